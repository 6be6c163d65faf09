//! The least traffic of the runs as a table.

use super::eval_view::{of_runs, run_fields};
use super::format::{number, or_dash, percent, seconds, thousands};
use super::table::Table;
use drift_engine::eval::record::{EvalReport, Roofline, RunReport};

/// Returns the bytes and operations that each run had to move and compute, compared with its time; `None` if nothing was counted.
pub fn floor_table(report: &EvalReport) -> Option<Table> {
    let counted = |run: &&RunReport| run.cost.floor.is_some();
    report.runs.iter().find(counted)?;
    let fields = run_fields(report, "what had to be moved and computed")
        .number("steps", |run| thousands(run.cost.decode_steps))
        .number("GB", |run| floor(run, |floor| Some(number(floor.traffic.bytes / 1e9))))
        .number("GB a step", |run| {
            let steps = run.cost.decode_steps.max(1) as f64;
            floor(run, |floor| Some(number(floor.traffic.bytes / 1e9 / steps)))
        })
        .number("operations\na byte", |run| {
            floor(run, |floor| Some(number(floor.traffic.operations / floor.traffic.bytes.max(1.0))))
        })
        .number("memory,\nGB/s", |run| floor(run, |floor| Some(number(floor.bytes_per_second? / 1e9))))
        .number("least time", |run| floor(run, |floor| Some(seconds(floor.floor_seconds?))))
        .number("share of it\nreached", |run| floor(run, |floor| Some(percent(floor.floor_share?))));
    let mut table = of_runs(fields, report.runs.iter().filter(counted));
    table.note(
        "Weights once a pass, keys and values once a pass and row, LM head where it was read; the rate is measured on the device.",
    );
    Some(table)
}

/// Returns a figure of a run's floor, or `-`.
fn floor(run: &RunReport, figure: impl FnOnce(&Roofline) -> Option<String>) -> String {
    or_dash(run.cost.floor.as_ref().and_then(figure), |shown| shown)
}
