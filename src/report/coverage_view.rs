//! Coverage and matching in tables, for generated texts and for files.

use super::format::{bound, or_dash};
use super::table::Table;
use drift_data::audit::MissingPolicy;
use drift_data::audit::coverage::{CoverageReport, ThresholdCoverage};

/// Adds the columns of coverage at these thresholds and of matching: mean and median over molecules.
pub(super) fn coverage_columns(mut table: Table, thresholds: &[ThresholdCoverage]) -> Table {
    for threshold in thresholds {
        let at = bound(threshold.angstrom);
        table = table
            .number(&format!("COV-R {at} Å\nmean, %"))
            .number("\nmedian")
            .number(&format!("COV-P {at} Å\nmean, %"))
            .number("\nmedian");
    }
    table.number("MAT-R, Å\nmean").number("\nmedian").number("MAT-P, Å\nmean").number("\nmedian")
}

/// Returns the cells of a row for these columns.
pub(super) fn coverage_cells(coverage: &CoverageReport, thresholds: usize) -> Vec<String> {
    let shares = coverage
        .thresholds
        .iter()
        .flat_map(|found| [found.cov_r.mean, found.cov_r.median, found.cov_p.mean, found.cov_p.median]);
    let mut cells: Vec<String> = shares.map(|share| format!("{:.2}", 100.0 * share)).collect();
    // If no molecule counts, there is no share.
    cells.resize(4 * thresholds, "-".to_owned());
    for found in [coverage.mat_r, coverage.mat_p] {
        let both = found.map_or([None, None], |found| [Some(found.mean), Some(found.median)]);
        cells.extend(both.map(|value| or_dash(value, |value| format!("{value:.4}"))));
    }
    cells
}

/// Explains how coverage and matching are counted.
pub(super) fn coverage_note(missing: MissingPolicy) -> &'static str {
    match missing {
        MissingPolicy::Zero => {
            "A molecule without a text to compare counts 0 in COV and is left out of MAT. RMSD of heavy atoms as RDKit's GetBestRMS."
        }
        MissingPolicy::LeaveOut => {
            "Molecules without a text to compare are left out of COV and MAT. RMSD of heavy atoms as RDKit's GetBestRMS."
        }
    }
}
