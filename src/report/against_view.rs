//! The comparison of two corpora as a table.

use super::format::{counted, percent_of, thousands};
use super::table::{Table, Terminal};
use drift_data::against::{AgainstReport, SharedKind, SharedRows};

/// Returns the counts of conformers with their shares, and a sentence that says what they mean.
pub fn against_table(report: &AgainstReport, terminal: Terminal) -> String {
    let (counts, other) = (&report.counts, &report.other);
    let mut table = Table::new(format!(
        "{} against {} of {}",
        counted(report.conformers, "conformer"),
        counted(other.conformers, "conformer"),
        counted(other.molecules, "molecule"),
    ))
    .text("")
    .number("conformers")
    .number("share");
    for (name, count) in kinds(report) {
        table.row([name.to_owned(), thousands(count), percent_of(count, report.conformers)]);
    }
    table.note(format!(
        "{} of {} and {} of {} with their stereo are in both",
        thousands(report.molecules_shared),
        counted(other.molecules, "molecule"),
        thousands(report.isomers_shared),
        thousands(other.isomers),
    ));
    table.note(format!(
        "{} of one geometry: RMSD up to {} Å over symmetric orders of atoms; {} of mirror images",
        counted(counts.pairs, "pair"),
        report.bound_angstrom,
        thousands(counts.mirror_pairs),
    ));
    table.note(format!(
        "of the other corpus: {} ({}) were met, {} repeat one before them, {} have no molecule to compare",
        counted(report.other_conformers_found, "geometry").replace("geometrys", "geometries"),
        percent_of(report.other_conformers_found, other.conformers),
        thousands(other.duplicate_conformers),
        thousands(other.not_compared),
    ));
    let doubtful = counts.rows_without_geometry + counts.rmsd_upper_bounds;
    if doubtful > 0 {
        table.note(format!(
            "{} and {} are too symmetric to decide",
            counted(counts.rows_without_geometry, "conformer"),
            counted(counts.rmsd_upper_bounds, "pair"),
        ));
    }
    note_rows(report, &mut table);
    let datasets = datasets_table(report, terminal);
    format!("{}{}{datasets}", table.render(terminal), if datasets.is_empty() { "" } else { "\n" })
}

/// Returns the numbers of conformers by what they share.
fn kinds(report: &AgainstReport) -> Vec<(&'static str, u64)> {
    let counts = &report.counts;
    let mut kinds = vec![
        ("with a text of the other corpus", counts.rows_with_shared_text),
        ("of a molecule of the other corpus", counts.rows_of_shared_molecules),
        ("with its stereo, as written", counts.rows_of_shared_isomers),
        ("with a geometry of the other corpus", counts.rows_with_duplicate),
        ("without one, but with the mirror image of one", counts.rows_with_mirror_image),
        ("with a Murcko scaffold of the other corpus", counts.rows_of_shared_scaffolds),
        ("without a molecule to compare", counts.rows_not_compared),
    ];
    if counts.rows_with_inchikey > 0 && report.other.inchikeys > 0 {
        kinds.push(("with an InChIKey of the other corpus", counts.rows_of_shared_inchikeys));
        kinds.push(("with the first block of one", counts.rows_of_shared_inchikey_blocks));
    }
    kinds
}

/// Says which rows stay, and whether data sets are told apart.
fn note_rows(report: &AgainstReport, table: &mut Table) {
    if report.counts.rows_kept + report.counts.rows_dropped > 0 {
        let kinds: Vec<&str> = report.shared_by.iter().map(|kind| kind.name()).collect();
        table.note(format!(
            "rows that stay: {}; rows that share {}: {}",
            thousands(report.counts.rows_kept),
            kinds.join(", "),
            thousands(report.counts.rows_dropped),
        ));
    }
    if report.has_too_many_datasets || report.other.has_too_many_subsets {
        table.note("there are more than 1,000 values of `dataset`, or 63 of `test_subset`, so they are not told apart".to_owned());
    }
}

/// Returns what is shared by data set and test subset; empty without these columns. Subsets with which a data set shares nothing are left
/// out.
fn datasets_table(report: &AgainstReport, terminal: Terminal) -> String {
    if report.datasets.is_empty() {
        return String::new();
    }
    let mut table = Table::new("conformers by data set and test subset".to_owned())
        .text("dataset")
        .text("test_subset")
        .number("conformers");
    for kind in SharedKind::ALL {
        table = table.number(kind.name());
    }
    let numbers = |shared: &SharedRows| SharedKind::ALL.map(|kind| thousands(shared.of(kind)));
    let named = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
    for dataset in &report.datasets {
        let (name, conformers) = (named(&dataset.dataset), thousands(dataset.conformers));
        table.row([name.clone(), "any".to_owned(), conformers].into_iter().chain(numbers(&dataset.shared)));
        let shares_some = |shared: &SharedRows| SharedKind::ALL.iter().any(|kind| shared.of(*kind) > 0);
        for subset in dataset.by_test_subset.iter().filter(|subset| shares_some(&subset.shared)) {
            let row = [name.clone(), named(&subset.test_subset), String::new()];
            table.row(row.into_iter().chain(numbers(&subset.shared)));
        }
    }
    table.render(terminal)
}
