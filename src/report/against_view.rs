//! The comparison of two corpora as a table.

use super::format::{counted, percent, thousands};
use super::table::{Table, Terminal};
use drift_data::against::AgainstReport;

/// The counts of conformers with their shares, and a sentence that says what they mean.
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
    let share = |count: u64, of: u64| percent(drift_data::stats::share(count, of));
    for (name, count) in [
        ("of a molecule of the other corpus", counts.rows_of_shared_molecules),
        ("with its stereo, as written", counts.rows_of_shared_isomers),
        ("with a geometry of the other corpus", counts.rows_with_duplicate),
        ("without one, but with the mirror image of one", counts.rows_with_mirror_image),
        ("without a molecule to compare", counts.rows_not_compared),
    ] {
        table.row([name.to_owned(), thousands(count), share(count, report.conformers)]);
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
        share(report.other_conformers_found, other.conformers),
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
    table.render(terminal)
}
