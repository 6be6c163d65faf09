//! Compares each logit processor with none, on the same molecules and random numbers.

use super::checkpoint::Checkpoint;
use super::judged::Judged;
use super::measured::MeasuredMolecule;
use super::record::PairedComparison;
use super::run::Run;
use drift_data::audit::pairs::{ComparedRow, PairedText, TextCounts, comparison};

/// A run, with the geometry of its texts.
pub(super) struct MeasuredRun<'r> {
    pub run: &'r Run,
    pub molecules: &'r [MeasuredMolecule],
}

impl<'r> MeasuredRun<'r> {
    /// The texts as [`comparison`] takes them.
    fn row(&self, checkpoint: &Checkpoint) -> ComparedRow<'r> {
        let MeasuredRun { run, molecules } = self;
        let cpu = run.cpu_seconds.filter(|seconds| *seconds > 0.0);
        ComparedRow {
            label: run.row_label(checkpoint),
            texts: run.judged.iter().map(|text| self.text(text)).collect(),
            deviations: molecules.iter().map(|one| (one.group, &one.deviations)).collect(),
            times: run.pace(),
            texts_per_cpu_second: cpu.map(|seconds| run.judged.len() as f64 / seconds),
            texts_per_second: Some(run.conformers_per_second()),
        }
    }

    fn text(&self, text: &'r Judged) -> PairedText<'r> {
        let measured = MeasuredMolecule::of_group(self.molecules, text.group);
        PairedText {
            molecule: text.group,
            prompt: text.subject,
            generation: text.generation as u64,
            place: 0,
            conformer: measured.and_then(|one| one.place(text)),
            counts: TextCounts::from_verdict(&text.verdict, text.copied && text.marks.is_empty()),
            text: &text.text,
        }
    }
}

/// Compares each run of a model with its run without a logit processor; empty if there is no such run.
pub(super) fn compare(checkpoint: &Checkpoint, runs: &[MeasuredRun<'_>], seed: u64) -> Vec<PairedComparison> {
    let is_base = |row: &ComparedRow<'_>| row.label.is_without_processor();
    let rows: Vec<ComparedRow<'_>> = runs.iter().map(|run| run.row(checkpoint)).collect();
    let Some(base) = rows.iter().find(|row| is_base(row)) else { return Vec::new() };
    let others: Vec<&ComparedRow<'_>> = rows.iter().filter(|row| !is_base(row)).collect();
    others.iter().map(|row| comparison(base, row, others.len(), seed)).collect()
}
