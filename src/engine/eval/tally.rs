//! Computes the figures of a run from its judged texts.

use super::checkpoint::Checkpoint;
use super::chemistry::chemistry;
use super::examples::examples;
use super::measured::MeasuredMolecule;
use super::plan::EvalPlan;
use super::record::{RunReport, Unseen};
use super::run::Run;
use super::run_cost::{WrittenSums, generation_run};
use super::subject::Subject;
use drift_data::audit::coverage::{CoverageReport, Deviations};
use drift_data::audit::{DriftHistogram, GeometryReport, SampleCounts};
use drift_data::stats::interval::{ClusterSums, LEVEL};

/// The figures of a run.
pub(super) fn run_report(
    plan: &EvalPlan,
    (checkpoint, unseen): (&Checkpoint, Unseen),
    subjects: &[Subject],
    run: &Run,
    measured: &[MeasuredMolecule],
) -> RunReport {
    let mut passed = ClusterSums::default();
    for texts in run.judged.chunk_by(|a, b| a.group == b.group) {
        passed.add(texts.iter().filter(|judged| judged.passed()).count() as i64, texts.len() as u64);
    }
    let mut counts = SampleCounts::new(checkpoint.encoding);
    // Runs report this count even if there is no block.
    counts.truncated_blocks.get_or_insert(0);
    let mut drift = DriftHistogram::default();
    for judged in &run.judged {
        counts.add(&judged.verdict, true);
        drift.merge(&judged.drift);
    }
    let (chemistry, worst) = chemistry(subjects, &run.judged);
    let deviations: Vec<&Deviations> =
        plan.missing.counted(measured.iter().map(|molecule| &molecule.deviations));
    let left_out = (measured.len() - deviations.len()) as u64;
    let written = WrittenSums {
        characters: run.judged.iter().map(|judged| judged.text.chars().count() as u64).sum(),
        wasted_tokens: run.judged.iter().map(|judged| judged.wasted_tokens).sum(),
    };
    let own = generation_run(&plan.generate, checkpoint, unseen, run, written);
    RunReport {
        lp: own.lp,
        placeholder: own.placeholder,
        placeholder_classes: own.placeholder_classes,
        tokenizer: own.tokenizer,
        model: own.model,
        device: own.device,
        dtype: own.dtype,
        batch: own.batch,
        encoding: own.encoding,
        encoding_from: own.encoding_from,
        unseen: own.unseen,
        outcome: counts,
        passed_interval: passed.share_interval(LEVEL),
        chemistry,
        worst,
        cost: own.cost,
        self_check: own.self_check,
        speed_measure: own.speed_measure,
        batch_seconds: own.batch_seconds,
        geometry: (!deviations.is_empty())
            .then(|| GeometryReport { left_out, ..GeometryReport::of_deviations(&deviations) }),
        coverage: CoverageReport::from_molecules(&deviations, &plan.thresholds),
        drift,
        probabilities: own.probabilities,
        mask_cost: own.mask_cost,
        resampling: own.resampling,
        examples: examples(subjects, &run.judged),
    }
}
