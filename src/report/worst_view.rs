//! The chemistry of an evaluation: the rows of the tables, and the worst texts with pictures.

use super::chemistry_view::{ChemistryRow, chemistry_table, flatness_table};
use super::eval_view::run_name;
use super::format::number;
use super::html::Section;
use super::plot::{MoleculePicture, molecule};
use drift_core::constraint::ProcessorKind;
use drift_data::audit::chemistry::ChemistryRule;
use drift_engine::eval::record::{EvalReport, RunReport, WorstText};

/// The largest number of kinds of broken rules that are listed for a text.
const NAMED: usize = 4;

/// One row per run, then the references.
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

/// The section of the page: the tables and, for one run of each model, the worst texts with pictures.
pub(super) fn chemistry_section(section: &mut Section, report: &EvalReport) {
    let rows = chemistry_rows(report);
    for table in [chemistry_table(&rows), flatness_table(&rows)].into_iter().flatten() {
        section.table(&table);
    }
    for run in pictured(report) {
        section.heading(&format!("The worst texts of `{}` under `{}`", run.model, run.label()));
        section.paragraph(
            "Texts that pass and break most rules for their size, one a molecule, laid onto the reference that is nearest \
             atom by atom.",
        );
        for worst in &run.worst {
            section.paragraph(&summary(worst));
            let title = format!("{}, text {}", worst.smiles, worst.generation + 1);
            let picture = MoleculePicture {
                title: &title,
                points: &worst.points,
                reference: worst.reference.as_deref(),
                elements: &worst.elements,
                bonds: &worst.bonds,
                findings: &worst.findings,
            };
            section.svg(&molecule(&picture), "");
        }
    }
}

/// The runs whose worst texts are drawn: for each model the automaton, or else the first run that has worst texts.
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

/// The broken rules of a text, in one line.
fn summary(worst: &WorstText) -> String {
    let count = |rule: ChemistryRule| worst.findings.iter().filter(|found| found.rule == rule).count();
    let counts = ChemistryRule::ALL.map(|rule| (count(rule), rule.name()));
    let mut broken: Vec<(usize, &str)> = counts.into_iter().filter(|(count, _)| *count > 0).collect();
    // The sort is stable: rules that are broken equally often keep their usual order.
    broken.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let more = broken.len().saturating_sub(NAMED);
    let mut named: Vec<String> =
        broken.iter().take(NAMED).map(|(count, rule)| format!("{count} × {rule}")).collect();
    if more > 0 {
        named.push(format!("{more} more kinds"));
    }
    let rmsd = worst.rmsd_angstrom.map(|rmsd| format!("; {} Å from the reference", number(rmsd)));
    format!(
        "`{}`, text {}: {}{}",
        worst.smiles,
        worst.generation + 1,
        named.join(", "),
        rmsd.unwrap_or_default()
    )
}
