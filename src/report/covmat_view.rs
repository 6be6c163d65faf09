//! Coverage and matching in the layout of 3DMolGen's `covmat_results.txt`.
//!
//! The layout is written by `save_covmat_results_txt` in `evaluation/write_eval_results.py` (YerevaNN/3DMolGen, commit `04edf7b`).
//! Numbers are truncated to four decimals, as by its `format_float`. Run times and PoseBusters' own rows are left out, since drift does
//! not know them.

use std::fmt::Write;

use drift_data::audit::AuditResult;
use drift_data::audit::coverage::MeanMedian;

/// The threshold of 3DMolGen's summary, in Å.
const THRESHOLD: f64 = 0.75;

/// Returns the text of the summary.
pub fn covmat_summary(audited: &AuditResult) -> String {
    let (report, missing) = (&audited.report, audited.texts.missing());
    let total = &report.total;
    let files: Vec<&str> = report.files.iter().map(|file| &*file.file).collect();
    // The inputs are the files, and behind them the references.
    let references = report.provenance.inputs.iter().skip(audited.texts.files());
    let references = references.map(|input| &*input.name).collect::<Vec<_>>().join(", ");
    let geometry = total.geometry.as_ref();
    let count = |of: fn(&drift_data::audit::GeometryReport) -> u64| geometry.map_or(0, of);
    let counted = count(|one| one.molecules) + count(|one| one.left_out);
    let mut out = format!("{0}\nCOVMAT EVALUATION RESULTS\n{0}\n\n", "=".repeat(80));
    section(&mut out, "EVALUATION SUMMARY");
    out += &format!(
        "Processed file: {}\nGround truth file: {references}\nTotal molecules generated: {}\n\
         Total conformers generated: {}\nTotal molecules in ground truth: {counted}\n\
         Total conformers in ground truth: {}\nMissing molecules (no conformers): {}\nAll-NaN RMSD keys: 0\n\n",
        files.join(", "),
        count(|one| one.molecules_with_conformers),
        count(|one| one.conformers),
        audited.texts.reference_conformers(),
        missing.len(),
    );
    section(&mut out, "COVERAGE AND RECALL METRICS");
    out += &format!("Threshold: {THRESHOLD}\n");
    let coverage = total.coverage.as_ref();
    // The thresholds of a sweep may differ from 0.75 in the last bit.
    let near = |angstrom: f64| (angstrom - THRESHOLD).abs() < 1e-9;
    let at = coverage.and_then(|all| all.coverage_sweep.iter().find(|one| near(one.angstrom)));
    for (name, found) in [
        ("Coverage-Recall (COV-R)", at.map(|one| one.cov_r)),
        ("Coverage-Precision (COV-P)", at.map(|one| one.cov_p)),
        ("Matching-Recall (MAT-R)", coverage.and_then(|all| all.mat_r)),
        ("Matching-Precision (MAT-P)", coverage.and_then(|all| all.mat_p)),
    ] {
        let of = |value: fn(MeanMedian) -> f64| number(found.map(value));
        out += &format!("{name}:\n  Mean:   {}\n  Median: {}\n", of(|one| one.mean), of(|one| one.median));
    }
    out.push('\n');
    section(&mut out, "MISSING MOLECULES (NO CONFORMERS)");
    for (at, smiles) in missing.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:3}. {smiles}", at + 1);
    }
    if missing.is_empty() {
        out += "None - all molecules had conformers\n";
    }
    out
}

fn section(out: &mut String, title: &str) {
    *out += &format!("{title}\n{}\n", "-".repeat(40));
}

/// Returns the number with four decimals, truncated, without trailing zeros.
fn number(value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| !value.is_nan()) else { return "N/A".to_owned() };
    let truncated = (value.abs() * 1e4).floor() / 1e4;
    let text = format!("{:.4}", truncated.copysign(value));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_truncated_as_theirs() {
        let all = [Some(0.749_99), Some(1.0), Some(0.0), Some(0.5), None, Some(f64::NAN)];
        assert_eq!(all.map(number), ["0.7499", "1", "0", "0.5", "N/A", "N/A"]);
    }
}
