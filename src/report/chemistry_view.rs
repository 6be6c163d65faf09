//! Chemistry as tables, and the worst texts as pictures.

use super::format::{number, percent, percent_interval, thousands};
use super::html::Section;
use super::plot::{MoleculePicture, molecule};
use super::table::Table;
use crate::audit::chemistry::{ChemistryFigure, ChemistryReport, ChemistryRule};
use crate::constraint::LpKind;
use crate::eval::record::WorstText;
use crate::eval::record::{EvalReport, RunReport};

/// How many kinds of broken rules a list names of a text.
const NAMED: usize = 4;

/// A row: what it is called, its chemistry, and how many texts or references there are.
struct Row<'r> {
    name: String,
    strong: bool,
    passed: String,
    chemistry: &'r ChemistryReport,
    texts: u64,
}

/// What the chemistry of the texts is beside that of the references; none if nothing was checked.
pub fn chemistry_table(report: &EvalReport) -> Option<Table> {
    let rows = rows(report);
    if rows.iter().all(|row| row.chemistry.checked == 0) {
        return None;
    }
    let mut table = Table::new("Chemistry of the texts that pass, and of the references")
        .code("")
        .number("pass")
        .number("valid")
        .number("95 %")
        .number("valid\nbut stereo")
        .number("stereocentres\nright")
        .number("double bonds\nright")
        .number("clashing")
        .number("wrong\nbonds")
        .number("wrong\nangles")
        .number("bent\nrings")
        .number("flat\nrings")
        .number("bent\nC=C, C=O")
        .number("in\npieces");
    for row in rows {
        let share = |figure| share(row.chemistry, figure, row.texts);
        let interval = row.chemistry.chemistry_intervals.get(&ChemistryFigure::Valid);
        let mut cells = vec![row.name.clone(), row.passed.clone()];
        let valid = row.chemistry.valid;
        cells.push(format!("{} of {}", thousands(valid), thousands(row.texts)));
        cells.push(interval.map_or_else(|| "-".to_owned(), |interval| percent_interval(*interval)));
        cells.extend(
            [
                ChemistryFigure::ValidGeometry,
                ChemistryFigure::StereocentresRight,
                ChemistryFigure::DoubleBondsRight,
                ChemistryFigure::Clashing,
                ChemistryFigure::BadBonds,
                ChemistryFigure::BadAngles,
                ChemistryFigure::BentAromaticRings,
                ChemistryFigure::FlatRings,
                ChemistryFigure::BentDoubleBonds,
                ChemistryFigure::Fragmented,
            ]
            .map(share),
        );
        add(&mut table, row.strong, cells);
    }
    table.note(
        "Valid: the prompt's stereo, no clash, bonds, angles and planes as in a molecule (the rules of PoseBusters on heavy \
         atoms, without its energy). Valid of all texts, stereo of what the prompts mark, the rest of the texts that \
         pass with their atoms in the order of the prompt.",
    );
    Some(table)
}

/// How much of space the texts use; none if nothing was checked.
pub fn flatness_table(report: &EvalReport) -> Option<Table> {
    let rows = rows(report);
    if rows.iter().all(|row| row.chemistry.checked == 0) {
        return None;
    }
    let mut table = Table::new("How flat the texts are")
        .code("")
        .number("checked")
        .number("all z\nnear 0")
        .number("95 %")
        .number("in one\nplane")
        .number("95 %")
        .number("blocks with\nz = 0")
        .number("95 %");
    for row in rows {
        let mut cells = vec![row.name.clone(), thousands(row.chemistry.checked)];
        for figure in [ChemistryFigure::Flat, ChemistryFigure::Planar, ChemistryFigure::ZeroZ] {
            cells.push(share(row.chemistry, figure, row.texts));
            let interval = row.chemistry.chemistry_intervals.get(&figure);
            cells.push(interval.map_or_else(|| "-".to_owned(), |interval| percent_interval(*interval)));
        }
        add(&mut table, row.strong, cells);
    }
    table.note(
        "Up to 0.05 Å, of four atoms or more. A clipped last digit of z costs nothing where z is 0.0000: templates of \
         zeros look better on flat texts than they are.",
    );
    Some(table)
}

fn rows(report: &EvalReport) -> Vec<Row<'_>> {
    let models = report.runs.iter().any(|run| run.model != report.runs[0].model);
    let mut rows: Vec<Row<'_>> = report
        .runs
        .iter()
        .map(|run| Row {
            name: if models { format!("{} {}", run.model, run.label()) } else { run.label() },
            strong: run.lp == LpKind::Automaton,
            passed: format!("{} of {}", thousands(run.outcome.passed), thousands(run.outcome.samples)),
            chemistry: &run.chemistry,
            texts: run.outcome.samples,
        })
        .collect();
    rows.extend(report.reference_chemistry.iter().map(|chemistry| Row {
        name: "references".to_owned(),
        strong: false,
        passed: "-".to_owned(),
        chemistry,
        texts: chemistry.checked,
    }));
    rows
}

fn share(chemistry: &ChemistryReport, figure: ChemistryFigure, texts: u64) -> String {
    match chemistry.share(figure, texts) {
        (_, 0) => "-".to_owned(),
        (count, of) => percent(crate::stats::share(count, of)),
    }
}

fn add(table: &mut Table, strong: bool, cells: Vec<String>) {
    if strong {
        table.strong_row(cells)
    } else {
        table.row(cells)
    };
}

/// The section of a page: the tables, and the worst texts with pictures of one run of each model.
pub(super) fn chemistry_section(section: &mut Section, report: &EvalReport) {
    for table in [chemistry_table(report), flatness_table(report)].into_iter().flatten() {
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

/// The runs whose worst texts are drawn: the automaton's of each model, else the first that has any.
fn pictured(report: &EvalReport) -> Vec<&RunReport> {
    let mut models: Vec<&str> = report.runs.iter().map(|run| &*run.model).collect();
    models.dedup();
    let of_model = |model: &&str| {
        let own = || report.runs.iter().filter(|run| run.model == *model && !run.worst.is_empty());
        own().find(|run| run.lp == LpKind::Automaton).or_else(|| own().next())
    };
    models.iter().filter_map(of_model).collect()
}

/// What is wrong with a text, in a line.
fn summary(worst: &WorstText) -> String {
    let count = |rule: ChemistryRule| worst.findings.iter().filter(|found| found.rule == rule).count();
    let mut broken: Vec<(usize, ChemistryRule)> = ChemistryRule::ALL
        .into_iter()
        .map(|rule| (count(rule), rule))
        .filter(|(count, _)| *count > 0)
        .collect();
    broken.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let more = broken.len().saturating_sub(NAMED);
    let mut named: Vec<String> =
        broken.iter().take(NAMED).map(|(count, rule)| format!("{count} × {}", rule.name())).collect();
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
