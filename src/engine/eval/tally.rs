//! Computes the figures of a run from its judged texts.

use super::checkpoint::Checkpoint;
use super::chemistry::chemistry;
use super::examples::examples;
use super::measured::MeasuredMolecule;
use super::plan::EvalPlan;
use super::probabilities::{mask_cost, probabilities, resampling};
use super::record::{Cost, Roofline, RunReport, Seconds, Unseen};
use super::run::Run;
use super::subject::Subject;
use crate::generate::{Generated, Traffic};
use drift_data::audit::coverage::{CoverageReport, Deviations};
use drift_data::audit::pairs::BatchTimes;
use drift_data::audit::{DriftHistogram, GeometryReport, SampleCounts};
use drift_data::stats::interval::{ClusterSums, LEVEL};

/// The figures of a run.
pub(super) fn run_report(
    plan: &EvalPlan,
    checkpoint: &Checkpoint,
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
    let BatchTimes { measure: speed_measure, seconds: batch_seconds } = run.pace();
    RunReport {
        lp: run.processor,
        placeholder: run.placeholder.clone(),
        placeholder_classes: run.classes.clone(),
        tokenizer: checkpoint.tokenizer.name.clone(),
        model: checkpoint.name.clone(),
        device: plan.device.name().to_owned(),
        dtype: plan.device.type_name().to_owned(),
        batch: plan.batch,
        encoding: checkpoint.encoding,
        encoding_from: checkpoint.encoding_from,
        unseen: Unseen::default(),
        outcome: counts,
        passed_interval: passed.share_interval(LEVEL),
        chemistry,
        worst,
        cost: cost(plan, checkpoint, run),
        self_check: run.generated.self_check.clone(),
        speed_measure,
        batch_seconds,
        geometry: (!deviations.is_empty())
            .then(|| GeometryReport { left_out, ..GeometryReport::of_deviations(&deviations) }),
        coverage: CoverageReport::from_molecules(&deviations, &plan.thresholds),
        drift,
        probabilities: probabilities(checkpoint, run),
        mask_cost: mask_cost(checkpoint, run),
        resampling: plan.resample.and_then(|draws| resampling(draws, run)),
        examples: examples(subjects, &run.judged),
    }
}

fn cost(plan: &EvalPlan, checkpoint: &Checkpoint, run: &Run) -> Cost {
    let (counts, timing) = (&run.generated.counts, &run.generated.timing);
    let total = run.total_seconds();
    let per_second = |count: u64| count as f64 / run.generating_seconds().max(f64::MIN_POSITIVE);
    let characters = run.judged.iter().map(|judged| judged.text.chars().count() as u64).sum();
    Cost {
        generated_tokens: counts.generated_tokens,
        forced_tokens: counts.forced_tokens,
        decode_steps: counts.decode_steps,
        kernel_steps: counts.kernel_steps,
        wasted_tokens: run.judged.iter().map(|judged| judged.wasted_tokens).sum(),
        tokens_per_second: per_second(counts.generated_tokens),
        characters_per_second: per_second(characters),
        conformers_per_second: run.conformers_per_second(),
        cpu_seconds: run.cpu_seconds,
        seconds: Seconds {
            total,
            start: timing.start,
            prefill: timing.prefill,
            forward: timing.forward,
            lp: timing.logit_processor,
            sampling: timing.sampling,
            templates: run.templates_seconds,
            other: timing.other,
        },
        peak_memory_bytes: run.peak_memory_bytes,
        floor: floor(plan, checkpoint, run),
    }
}

/// The least memory traffic of the run, and the share of the bandwidth that the run reached.
fn floor(plan: &EvalPlan, checkpoint: &Checkpoint, run: &Run) -> Option<Roofline> {
    let Generated { counts, timing, .. } = &run.generated;
    let traffic = Traffic::new(&checkpoint.config, plan.device.bytes_per_number(), counts)?;
    // The start of a device is excluded, because it moves none of these bytes.
    let elapsed = (timing.total() - timing.start).max(f64::MIN_POSITIVE);
    // If the run itself was faster than the measured bandwidth, something slowed the measurement down, so it is not used.
    let bytes_per_second = checkpoint.bytes_per_second.filter(|rate| traffic.bytes / elapsed <= *rate);
    let floor_seconds = bytes_per_second.map(|rate| traffic.bytes / rate);
    let floor_share = floor_seconds.map(|seconds| seconds / elapsed);
    Some(Roofline { traffic, bytes_per_second, floor_seconds, floor_share })
}
