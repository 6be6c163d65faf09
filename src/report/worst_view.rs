//! The chemistry of an evaluation: the rows of the tables, and the worst texts with pictures.

use super::chemistry_view::{ChemistryRow, chemistry_table, flatness_table};
use super::eval_view::run_name;
use super::html::Section;
use super::viewer::{WorstRow, worst_texts};
use drift_core::constraint::ProcessorKind;
use drift_engine::eval::record::{EvalReport, RunReport};

/// Returns one row per run, then the references.
pub fn chemistry_rows(report: &EvalReport) -> Vec<ChemistryRow<'_>> {
    let mut rows: Vec<ChemistryRow<'_>> = report
        .runs
        .iter()
        .map(|run| ChemistryRow {
            name: run_name(report, run),
            strong: run.lp == ProcessorKind::Automaton,
            passed: Some(run.outcome.passed),
            chemistry: &run.chemistry,
            texts: run.outcome.samples,
        })
        .collect();
    rows.extend(report.reference_chemistry.iter().map(ChemistryRow::references));
    rows
}

/// Adds the section of the page: the tables and, for one run of each model, the worst texts with pictures.
pub(super) fn chemistry_section(section: &mut Section, report: &EvalReport) {
    let rows = chemistry_rows(report);
    for table in [chemistry_table(&rows), flatness_table(&rows)].into_iter().flatten() {
        section.table(&table);
    }
    let rows = pictured(report).into_iter();
    let rows = rows
        .map(|run| WorstRow { name: format!("`{}` under `{}`", run.model, run.label()), texts: &run.worst });
    worst_texts(section, &rows.collect::<Vec<WorstRow<'_>>>());
}

/// Returns the runs whose worst texts are drawn: for each model the automaton, or else the first run that has worst texts.
fn pictured(report: &EvalReport) -> Vec<&RunReport> {
    let mut models: Vec<&str> = report.runs.iter().map(|run| &*run.model).collect();
    // The runs of a model are adjacent.
    models.dedup();
    let drawn = models.iter().filter_map(|model| {
        let mut own = report.runs.iter().filter(|run| run.model == *model && !run.worst.is_empty());
        own.clone().find(|run| run.lp == ProcessorKind::Automaton).or_else(|| own.next())
    });
    drawn.collect()
}
