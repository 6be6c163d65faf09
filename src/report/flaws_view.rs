//! What is in a corpus that may not belong in a training set, as tables.

use super::format::{counted, percent_of, thousands};
use super::table::{Table, Terminal};
use drift_data::flaws::{FlawCounts, FlawKind, FlawReport};
use drift_data::stats::faults::{LONGEST_BOND_ANGSTROM, ONE_POINT_ANGSTROM, SHORTEST_BOND_ANGSTROM};

/// Returns the numbers of conformers by what is wrong with them, and the same by data set, as text that begins with an empty line.
pub fn flaws_text(report: &FlawReport, terminal: Terminal) -> String {
    let tables: Vec<String> = flaws_tables(report).iter().map(|table| table.render(terminal)).collect();
    format!("\n{}", tables.join("\n"))
}

/// Returns the numbers of conformers by what is wrong with them, and the same by data set if the corpus tells data sets apart.
pub fn flaws_tables(report: &FlawReport) -> Vec<Table> {
    std::iter::once(kinds_table(report)).chain(datasets_table(report)).collect()
}

fn kinds_table(report: &FlawReport) -> Table {
    let mut table = Table::new("What may not belong in a training set".to_owned())
        .text("kind")
        .text("")
        .number("conformers")
        .number("share");
    for kind in FlawKind::ALL {
        let meaning = meaning(kind, report.bound_angstrom);
        table.row(row(kind.name(), meaning, report.counts.of(kind), report.conformers));
    }
    table.strong_row(row("any", "some of these".to_owned(), report.flawed, report.conformers));
    if report.not_compared > 0 {
        let count = counted(report.not_compared, "conformer");
        table.note(format!("{count} without a molecule or without coordinates: only the text is compared"));
    }
    if report.undecided > 0 {
        let count = counted(report.undecided, "conformer");
        table.note(format!("{count} too symmetric or too large to be compared with an earlier one"));
    }
    if report.has_too_many_datasets {
        table.note("there are more than 1,000 values of `dataset`, so they are not told apart".to_owned());
    }
    table
}

fn row(name: &str, meaning: String, count: u64, of: u64) -> Vec<String> {
    vec![name.to_owned(), meaning, thousands(count), percent_of(count, of)]
}

fn numbers(counts: &FlawCounts) -> [String; FlawKind::ALL.len()] {
    FlawKind::ALL.map(|kind| thousands(counts.of(kind)))
}

fn meaning(kind: FlawKind, bound: f64) -> String {
    match kind {
        FlawKind::DuplicateText => "the text of an earlier one".to_owned(),
        FlawKind::DuplicateConformer => format!("within {bound} Å of an earlier one"),
        FlawKind::CoincidentAtoms => format!("two atoms within {ONE_POINT_ANGSTROM} Å"),
        FlawKind::ShortBond => format!("a bond below {SHORTEST_BOND_ANGSTROM} Å"),
        FlawKind::LongBond => format!("a bond above {LONGEST_BOND_ANGSTROM} Å"),
        FlawKind::Fragments => "several molecules".to_owned(),
        FlawKind::Stereo => "a stereo mark that the coordinates do not have".to_owned(),
    }
}

/// Returns the numbers by data set; `None` without the column.
fn datasets_table(report: &FlawReport) -> Option<Table> {
    if report.datasets.is_empty() {
        return None;
    }
    let mut table = Table::new("By data set".to_owned()).text("dataset").number("conformers");
    for kind in FlawKind::ALL {
        table = table.number(kind.name());
    }
    table = table.number("any");
    for dataset in &report.datasets {
        let name = dataset.dataset.clone().unwrap_or_else(|| "-".to_owned());
        let row = [name, thousands(dataset.conformers)].into_iter().chain(numbers(&dataset.counts));
        table.row(row.chain([thousands(dataset.flawed)]));
    }
    Some(table)
}
