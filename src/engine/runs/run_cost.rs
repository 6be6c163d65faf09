//! What is known about a run beside its texts: its cost, and the probabilities of its tokens.

use super::checkpoint::Checkpoint;
use super::plan::GeneratePlan;
use super::probabilities::{mask_cost, probabilities, resampling};
use super::run::Run;
use crate::generate::GenerationResult;
use drift_data::audit::pairs::BatchTimes;
use drift_data::generation::{Cost, GenerationRun, Roofline, Seconds, Unseen};

/// Returns what is known about a run beside its texts.
pub(crate) fn generation_run(
    plan: &GeneratePlan,
    checkpoint: &Checkpoint,
    unseen: Unseen,
    run: &Run,
) -> GenerationRun {
    let BatchTimes { measure: speed_measure, seconds: batch_seconds, .. } = run.pace();
    GenerationRun {
        model: checkpoint.name.clone(),
        lp: run.processor,
        placeholder: run.placeholder.clone(),
        placeholder_classes: run.classes.clone(),
        tokenizer: checkpoint.tokenizer.name.clone(),
        encoding: checkpoint.encoding,
        encoding_from: checkpoint.encoding_from,
        device: plan.device.name().to_owned(),
        dtype: plan.device.type_name().to_owned(),
        batch: plan.batch,
        unseen,
        texts: run.generated.samples.len() as u64,
        cost: cost(plan, checkpoint, run),
        self_check: run.generated.self_check.clone(),
        speed_measure,
        batch_seconds,
        probabilities: probabilities(checkpoint, run),
        mask_cost: mask_cost(checkpoint, run),
        resampling: plan.resample.and_then(|draws| resampling(draws, run)),
    }
}

fn cost(plan: &GeneratePlan, checkpoint: &Checkpoint, run: &Run) -> Cost {
    let (counts, timing) = (&run.generated.counts, &run.generated.timing);
    let total = run.total_seconds();
    let characters = run.written.iter().map(|text| text.text.chars().count() as u64).sum();
    let per_second = |count: u64| count as f64 / run.generating_seconds().max(f64::MIN_POSITIVE);
    Cost {
        generated_tokens: counts.generated_tokens,
        forced_tokens: counts.forced_tokens,
        decode_steps: counts.decode_steps,
        kernel_steps: counts.kernel_steps,
        wasted_tokens: run.written.iter().map(|text| text.wasted_tokens).sum(),
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

/// Returns the least memory traffic of the run, and the share of the bandwidth that the run reached.
fn floor(plan: &GeneratePlan, checkpoint: &Checkpoint, run: &Run) -> Option<Roofline> {
    let GenerationResult { counts, timing, .. } = &run.generated;
    let traffic = counts.traffic(&checkpoint.config, plan.device.bytes_per_number())?;
    // The start of a device is excluded, because it moves none of these bytes.
    let elapsed = (timing.total() - timing.start).max(f64::MIN_POSITIVE);
    // If the run itself was faster than the measured bandwidth, something slowed the measurement down, so it is not used.
    let bytes_per_second = checkpoint.bytes_per_second.filter(|rate| traffic.bytes / elapsed <= *rate);
    let floor_seconds = bytes_per_second.map(|rate| traffic.bytes / rate);
    let floor_share = floor_seconds.map(|seconds| seconds / elapsed);
    Some(Roofline { traffic, bytes_per_second, floor_seconds, floor_share })
}
