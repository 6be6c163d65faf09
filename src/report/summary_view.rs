//! A record of `drift eval` in one table: what each logit processor does to the texts, in at most 100 columns.

use super::eval_view::{geometry_cell, valid};
use super::format::{number, or_dash, percent, thousands};
use super::table::Table;
use drift_core::constraint::ProcessorKind;
use drift_engine::eval::record::{EvalReport, RunReport};

/// One table for each model with one row per logit processor, the automaton in bold.
pub fn summary_tables(report: &EvalReport) -> Vec<Table> {
    let models = report.runs.chunk_by(|a, b| a.model == b.model && a.tokenizer == b.tokenizer);
    let mut tables: Vec<Table> = models.map(summary).collect();
    if let Some(last) = tables.last_mut() {
        last.note(
            "pass: the molecule of the prompt, and three numbers in every block. valid: also its stereo,",
        )
        .note("bonds, angles and planes are right and no atoms clash. junk: the block is not three numbers.")
        .note("truncated: it lost digits. Bond error, MAT-P: means over the texts that pass.");
    }
    tables
}

fn summary(runs: &[RunReport]) -> Table {
    let same = runs.iter().all(|run| run.outcome.samples == runs[0].outcome.samples);
    let counted =
        if same { format!(", {} texts each", thousands(runs[0].outcome.samples)) } else { String::new() };
    let mut table = Table::new(format!("{}{counted}", runs[0].model))
        .code("logit processor")
        .number("texts\nthat pass")
        .number("valid")
        .number("junk\nblocks")
        .number("truncated\nblocks")
        .number("bond\nerror, Å")
        .number("MAT-P, Å")
        .number("tokens/s");
    for run in runs {
        let outcome = &run.outcome;
        let share = |count: u64| percent(drift_data::stats::share(count, outcome.blocks));
        let passed = thousands(outcome.passed);
        let cells = vec![
            run.label(),
            if same { passed } else { format!("{passed} of {}", thousands(outcome.samples)) },
            valid(run),
            share(outcome.junk_blocks_strict),
            or_dash(outcome.truncated_blocks, share),
            geometry_cell(run, |geometry| geometry.bond_length_error_angstrom),
            geometry_cell(run, |geometry| geometry.mat_precision_angstrom),
            number(run.cost.tokens_per_second),
        ];
        table.marked_row(run.lp == ProcessorKind::Automaton, cells);
    }
    table
}
