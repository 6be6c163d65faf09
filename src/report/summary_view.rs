//! A record of `drift eval` in one table: what each logit processor does to the texts, in at most 100 columns.

use super::fields::Fields;
use super::format::thousands;
use super::pairs_view::{RowFigures, with_figures};
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
    let fields = Fields::new(format!("{}{counted}", runs[0].model))
        .code("logit processor", RunReport::label)
        .number("texts\nthat pass", |run| {
            let (passed, samples) = (thousands(run.outcome.passed), thousands(run.outcome.samples));
            if same { passed } else { format!("{passed} of {samples}") }
        });
    let fields = with_figures(fields, |run| RowFigures {
        counts: &run.outcome,
        chemistry: &run.chemistry,
        geometry: run.geometry.as_ref(),
        tokens_per_second: Some(run.cost.tokens_per_second),
    });
    fields.marked(runs, |run| run.lp == ProcessorKind::Automaton)
}
