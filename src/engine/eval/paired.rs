//! Compares each logit processor with none, on the same molecules and random numbers.

use super::checkpoint::Checkpoint;
use super::judged::Judged;
use super::measured::MeasuredMolecule;
use super::record::PairedComparison;
use super::run::Run;
use drift_core::constraint::ProcessorKind;
use drift_data::audit::RowLabel;
use drift_data::audit::pairs::{ComparedRow, PairedText, TextCounts, comparison};

/// A run, with the geometry of its texts.
pub(super) struct MeasuredRun<'r> {
    pub run: &'r Run,
    pub molecules: &'r [MeasuredMolecule],
}

/// Compares each run of a model with its run without a logit processor; empty if there is no such run.
pub(super) fn compare(checkpoint: &Checkpoint, runs: &[MeasuredRun<'_>], seed: u64) -> Vec<PairedComparison> {
    let kept: Vec<KeptRow> = runs.iter().map(|run| KeptRow::new(checkpoint, run.run)).collect();
    let rows: Vec<ComparedRow<'_>> = runs.iter().zip(&kept).map(|(run, kept)| kept.row(run)).collect();
    let Some(base) = runs.iter().position(|run| run.run.processor == ProcessorKind::None) else {
        return Vec::new();
    };
    let others = rows.iter().zip(runs).filter(|(_, run)| run.run.processor != ProcessorKind::None);
    let count = others.clone().count();
    others.map(|(row, _)| comparison(&rows[base], row, count, seed)).collect()
}

/// What a run holds in another form than a comparison needs.
struct KeptRow {
    label: RowLabel,
    counts: Vec<TextCounts>,
}

impl KeptRow {
    fn new(checkpoint: &Checkpoint, run: &Run) -> Self {
        let counts =
            |text: &Judged| TextCounts::from_verdict(&text.verdict, text.copied && text.marks.is_empty());
        KeptRow { label: run.row_label(checkpoint), counts: run.judged.iter().map(counts).collect() }
    }

    fn row<'r>(&'r self, MeasuredRun { run, molecules }: &MeasuredRun<'r>) -> ComparedRow<'r> {
        let text = |(text, counts): (&'r Judged, &'r TextCounts)| PairedText {
            molecule: text.group,
            prompt: text.subject,
            generation: text.generation as u64,
            place: 0,
            conformer: MeasuredMolecule::of_group(molecules, text.group).and_then(|one| one.place(text)),
            counts,
            text: &text.text,
        };
        let cpu = run.cpu_seconds.filter(|seconds| *seconds > 0.0);
        ComparedRow {
            label: &self.label,
            texts: run.judged.iter().zip(&self.counts).map(text).collect(),
            deviations: molecules.iter().map(|one| (one.group, &one.deviations)).collect(),
            times: run.pace(),
            texts_per_cpu_second: cpu.map(|seconds| run.judged.len() as f64 / seconds),
            texts_per_second: Some(run.conformers_per_second()),
        }
    }
}
