//! The least traffic of the runs as a table.

use super::eval_view::{add_run, runs_table};
use super::format::{number, or_dash, percent, seconds, thousands};
use super::table::Table;
use drift_engine::eval::record::EvalReport;

/// Returns the bytes and operations that each run had to move and compute, compared with its time; `None` if nothing was counted.
pub fn floor_table(report: &EvalReport) -> Option<Table> {
    let runs: Vec<_> = report.runs.iter().filter_map(|run| Some((run, run.cost.floor?))).collect();
    if runs.is_empty() {
        return None;
    }
    let mut table = runs_table(report, "what had to be moved and computed")
        .number("steps")
        .number("GB")
        .number("GB a step")
        .number("operations\na byte")
        .number("memory,\nGB/s")
        .number("least time")
        .number("share of it\nreached");
    for (run, floor) in runs {
        let gigabytes = floor.traffic.bytes / 1e9;
        let cells = [
            thousands(run.cost.decode_steps),
            number(gigabytes),
            number(gigabytes / run.cost.decode_steps.max(1) as f64),
            number(floor.traffic.operations / floor.traffic.bytes.max(1.0)),
            or_dash(floor.bytes_per_second, |rate| number(rate / 1e9)),
            or_dash(floor.floor_seconds, seconds),
            or_dash(floor.floor_share, percent),
        ];
        add_run(&mut table, report, run, cells);
    }
    table.note(
        "Weights once a pass, keys and values once a pass and row, LM head where it was read; the rate is measured on the device.",
    );
    Some(table)
}
