//! The summary at the top of a page: sentences with their numbers and intervals that can be pasted into a paper, and the command.

use super::format::{number, percent, percent_of, signed, thousands};
use super::html::Section;
use drift_core::job::Provenance;
use drift_data::audit::chemistry::ChemistryReport;
use drift_data::audit::pairs::PairedComparison;
use drift_data::audit::{GeometryReport, SampleCounts};
use drift_data::stats::Interval;
use drift_data::stats::bootstrap::Mean;

/// A row, as the summary tells it.
pub(super) struct SummaryRow<'r> {
    /// What its texts are of, as in ``texts of `qwen-like` under `automaton` ``.
    pub name: String,
    pub counts: &'r SampleCounts,
    pub passed_interval: Option<Interval>,
    pub chemistry: &'r ChemistryReport,
    pub geometry: Option<&'r GeometryReport>,
    /// The row beside its base.
    pub pair: Option<&'r PairedComparison>,
}

/// The summary of a page.
pub(super) struct Summary<'r> {
    /// What was generated or judged, as a sentence.
    pub setting: String,
    pub rows: Vec<SummaryRow<'r>>,
    /// The base row, in words, as in "no logit processor".
    pub base: String,
    pub provenance: &'r Provenance,
    pub command: Option<&'r str>,
}

impl Summary<'_> {
    /// Writes it.
    pub(super) fn write(&self, section: &mut Section) {
        let mut sentences = vec![self.setting.clone()];
        for row in &self.rows {
            sentences.push(passing(row));
            sentences.extend(row.pair.and_then(|pair| differences(pair, &self.base)));
        }
        let Provenance { program, version, revision, .. } = self.provenance;
        sentences.push(format!(
            "Intervals are of 95 %, over molecules. Computed with {program} {version} (revision {revision})."
        ));
        section.paragraph(&sentences.join(" "));
        if let Some(command) = self.command {
            section.command(command);
        }
    }
}

/// Returns how many texts pass and are valid, and how far they are from the references.
fn passing(row: &SummaryRow<'_>) -> String {
    let SampleCounts { passed, samples, .. } = row.counts;
    let interval = row.passed_interval.map(|Interval { low, high }| {
        format!(", 95 % interval {} to {}", percent(low).replace(" %", ""), percent(high))
    });
    let mut out = format!(
        "Of {} {}, {} pass ({}{})",
        thousands(*samples),
        row.name,
        thousands(*passed),
        percent_of(*passed, *samples),
        interval.unwrap_or_default()
    );
    if row.chemistry.checked > 0 {
        out.push_str(&format!(" and {} are valid", thousands(row.chemistry.valid)));
    }
    let geometry = row.geometry;
    let figures = [
        ("MAT-P", geometry.and_then(|geometry| geometry.mat_precision_angstrom)),
        ("MAT-R", geometry.and_then(|geometry| geometry.mat_recall_angstrom)),
        ("bond-length error", geometry.and_then(|geometry| geometry.bond_length_error_angstrom)),
    ];
    let figures: Vec<String> =
        figures.into_iter().filter_map(|(name, mean)| Some(format!("{name} {}", length(mean?)))).collect();
    if let Some(geometry) = geometry.filter(|_| !figures.is_empty()) {
        let molecules = thousands(geometry.molecules_with_conformers);
        out.push_str(&format!("; {} (n = {molecules} molecules)", figures.join(", ")));
    }
    out + "."
}

/// Returns a mean in Å with its interval.
fn length(mean: Mean) -> String {
    let interval =
        mean.interval.map(|Interval { low, high }| format!(" [{}, {}]", number(low), number(high)));
    format!("{} Å{}", number(mean.mean), interval.unwrap_or_default())
}

/// Returns the differences from the base row, paired; `None` if no length could be compared.
fn differences(pair: &PairedComparison, base: &str) -> Option<String> {
    let figures = [
        ("bond-length error", pair.bond_error_difference_angstrom),
        ("MAT-P", pair.mat_precision_difference_angstrom),
    ];
    let known: Vec<(&str, Mean)> =
        figures.into_iter().filter_map(|(name, mean)| Some((name, mean?))).collect();
    let molecules = known.first()?.1.items;
    let said: Vec<String> =
        known.into_iter().map(|(name, mean)| format!("{name} {}", difference(mean))).collect();
    Some(format!(
        "Against {base}, over texts that pass both ways (n = {} molecules, paired): {}; {:+} texts pass.",
        thousands(molecules as u64),
        said.join(", "),
        pair.passed_difference
    ))
}

/// Returns a difference in Å with its interval.
fn difference(mean: Mean) -> String {
    let interval =
        mean.interval.map(|Interval { low, high }| format!(" [{}, {}]", signed(low, 3), signed(high, 3)));
    format!("{} Å{}", signed(mean.mean, 3), interval.unwrap_or_default())
}
