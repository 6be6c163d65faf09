//! From judged texts to the figures of a run.

use super::checkpoint::Checkpoint;
use super::environment::peak_memory_bytes;
use super::examples::examples;
use super::judged::{Judged, by_molecule};
use super::plan::EvalPlan;
use super::probabilities::probabilities;
use super::record::{Cost, RunReport, Seconds};
use super::run::Run;
use super::subject::Subject;
use crate::audit::{DriftHistogram, GeometryReport, SampleCounts};
use crate::stats::interval::{ClusterSums, LEVEL};

/// The figures of a run.
pub(super) fn run_report(
    plan: &EvalPlan,
    checkpoint: &Checkpoint,
    subjects: &[Subject],
    run: &Run,
) -> RunReport {
    let judged: Vec<&Judged> = run.judged.iter().collect();
    let mut passed = ClusterSums::default();
    for texts in run.judged.chunk_by(|a, b| a.subject == b.subject) {
        passed.add(texts.iter().filter(|judged| judged.passed()).count() as i64, texts.len() as u64);
    }
    let mut counts = SampleCounts::new(checkpoint.dialect);
    // A run says how many even if there is no block.
    counts.truncated_blocks.get_or_insert(0);
    let mut drift = DriftHistogram::default();
    for judged in &run.judged {
        counts.add(&judged.verdict, true);
        drift.merge(&judged.drift);
    }
    RunReport {
        lp: run.processor,
        placeholder: run.placeholder.clone(),
        placeholder_classes: run.classes.clone(),
        tokenizer: checkpoint.tokenizer.name.clone(),
        model: checkpoint.name.clone(),
        device: plan.device.name().to_owned(),
        dtype: plan.device.dtype().as_str().to_owned(),
        batch: plan.batch,
        dialect: checkpoint.dialect,
        outcome: counts,
        passed_interval: passed.share_interval(LEVEL),
        cost: cost(run),
        geometry: geometry(subjects, &judged),
        drift,
        probabilities: probabilities(checkpoint, run),
        examples: examples(subjects, &run.judged),
    }
}

/// The geometry of a run; none without reference conformers.
fn geometry(subjects: &[Subject], judged: &[&Judged]) -> Option<GeometryReport> {
    let molecules = by_molecule(subjects, judged);
    let pairs: Vec<_> = molecules.iter().map(|(reference, generated)| (*reference, generated)).collect();
    (!pairs.is_empty()).then(|| GeometryReport::of(&pairs))
}

fn cost(run: &Run) -> Cost {
    let (counts, timing) = (&run.generated.counts, &run.generated.timing);
    let total = run.total_seconds();
    let per_second = |count: u64| count as f64 / total.max(f64::MIN_POSITIVE);
    let characters = run.judged.iter().map(|judged| judged.text.chars().count() as u64).sum();
    Cost {
        generated_tokens: counts.generated_tokens,
        forced_tokens: counts.forced_tokens,
        decode_steps: counts.decode_steps,
        wasted_tokens: run.judged.iter().map(|judged| judged.wasted_tokens).sum(),
        tokens_per_second: per_second(counts.generated_tokens),
        characters_per_second: per_second(characters),
        conformers_per_second: run.conformers_per_second(),
        cpu_seconds: run.cpu_seconds,
        seconds: Seconds {
            total,
            prefill: timing.prefill,
            forward: timing.forward,
            lp: timing.logit_processor,
            sampling: timing.sampling,
            templates: run.templates_seconds,
            other: timing.other,
        },
        peak_memory_bytes: peak_memory_bytes(),
    }
}
