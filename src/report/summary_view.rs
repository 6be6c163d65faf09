//! A record of `drift eval` in one table: what each logit processor does to the texts, in at most 100 columns.

use super::format::thousands;
use super::pairs_view::{RowFigures, figure_columns};
use super::table::Table;
use drift_core::constraint::ProcessorKind;
use drift_engine::eval::record::{EvalReport, RunReport};

/// Returns one table for each model with one row per logit processor, the automaton in bold.
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
    let mut table =
        Table::new(format!("{}{counted}", runs[0].model)).code("logit processor").number("texts\nthat pass");
    table = figure_columns(table);
    for run in runs {
        let outcome = &run.outcome;
        let passed = thousands(outcome.passed);
        let mut cells = vec![
            run.label(),
            if same { passed } else { format!("{passed} of {}", thousands(outcome.samples)) },
        ];
        let figures = RowFigures {
            counts: outcome,
            chemistry: &run.chemistry,
            geometry: run.geometry.as_ref(),
            tokens_per_second: Some(run.cost.tokens_per_second),
        };
        cells.extend(figures.cells());
        table.marked_row(run.lp == ProcessorKind::Automaton, cells);
    }
    table
}
