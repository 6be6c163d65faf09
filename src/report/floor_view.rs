//! The least traffic of the runs as a table.

use super::eval_view::{add, model_cells, model_column, title};
use super::format::{number, percent, seconds, thousands};
use super::table::Table;
use drift_core::constraint::ProcessorKind;
use drift_engine::eval::record::EvalReport;

/// The bytes and operations that each run had to move and compute, compared with its time; `None` if nothing was counted.
pub fn floor_table(report: &EvalReport) -> Option<Table> {
    let runs: Vec<_> = report.runs.iter().filter_map(|run| Some((run, run.cost.floor?))).collect();
    if runs.is_empty() {
        return None;
    }
    let mut table = Table::new(title(report, "what had to be moved and computed"));
    table = model_column(table, report)
        .code("logit processor")
        .number("steps")
        .number("GB")
        .number("GB a step")
        .number("operations\na byte")
        .number("memory,\nGB/s")
        .number("least time")
        .number("share of it\nreached");
    for (run, floor) in runs {
        let gigabytes = floor.traffic.bytes / 1e9;
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let mut cells = model_cells(report, &run.model);
        cells.extend([
            run.label(),
            thousands(run.cost.decode_steps),
            number(gigabytes),
            number(gigabytes / run.cost.decode_steps.max(1) as f64),
            number(floor.traffic.operations / floor.traffic.bytes.max(1.0)),
            or_dash(floor.bytes_per_second.map(|rate| number(rate / 1e9))),
            or_dash(floor.floor_seconds.map(seconds)),
            or_dash(floor.floor_share.map(percent)),
        ]);
        add(&mut table, run.lp == ProcessorKind::Automaton, cells);
    }
    table.note(
        "Weights once a pass, keys and values once a pass and row, LM head where it was read; the rate is measured on the device.",
    );
    Some(table)
}
