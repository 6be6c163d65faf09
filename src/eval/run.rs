//! Generating under one logit processor.

use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::checkpoint::Checkpoint;
use super::environment::cpu_seconds;
use super::judged::{Judged, Judging, judge_all};
use super::molecules::Molecule;
use super::placeholders::NamedPlaceholder;
use super::plan::EvalPlan;
use super::record::{ClassPlaceholder, SpeedMeasure};
use super::speed::BatchTimes;
use super::subject::Subject;
use crate::constraint::vocabulary::Vocabulary;
use crate::constraint::{Constraint, LogitProcessor, LpKind};
use crate::error::Result;
use crate::generate::{Generated, Options, Prompt, Resampling};
use crate::job::Job;
use crate::text::{skeleton, tagged};
use crate::tokenizer::Tokenizer;
use crate::train;

/// The widest block: a negative number of two digits before the point on each axis.
const WIDEST: &str = "-10.0001,-10.0001,-10.0001";

/// A run that is over.
pub(super) struct Run {
    pub processor: LpKind,
    /// Its label.
    pub placeholder: Option<String>,
    /// By class of block, if it has classes.
    pub classes: Vec<ClassPlaceholder>,
    pub generated: Generated,
    pub judged: Vec<Judged>,
    pub templates_seconds: f64,
    /// CPU seconds of generating; none on a GPU, or where the system doesn't tell.
    pub cpu_seconds: Option<f64>,
}

impl Run {
    /// The wall time, in seconds, templates included.
    pub(super) fn total_seconds(&self) -> f64 {
        self.generated.timing.total() + self.templates_seconds
    }

    /// Texts per second of wall time, templates included.
    pub(super) fn conformers_per_second(&self) -> f64 {
        self.judged.len() as f64 / self.total_seconds().max(f64::MIN_POSITIVE)
    }

    /// The time of each batch: by the CPU where that is known of all.
    pub(super) fn pace(&self) -> BatchTimes {
        let batches = &self.generated.batches;
        match batches.iter().map(|batch| batch.cpu).collect::<Option<Vec<f64>>>() {
            Some(seconds) => BatchTimes { measure: SpeedMeasure::Cpu, seconds },
            None => BatchTimes {
                measure: SpeedMeasure::Wall,
                seconds: batches.iter().map(|batch| batch.wall).collect(),
            },
        }
    }
}

/// Generates for all molecules under one logit processor, and judges the texts.
///
/// # Errors
/// If the processor cannot be built for the tokenizer, or the device fails.
pub(super) fn run(
    plan: &EvalPlan,
    checkpoint: &mut Checkpoint,
    subjects: &[Subject],
    (processor, named): (LpKind, Option<&NamedPlaceholder>),
    job: &Job,
) -> Result<Run> {
    let begin = Instant::now();
    let placeholder = named.map(|named| &named.placeholder);
    let (constraints, prompts);
    {
        let Checkpoint { tokenizer, dialect, specials, spelling, .. } = &*checkpoint;
        let mut processor =
            LogitProcessor::new(processor, tokenizer.clone(), *dialect, placeholder, specials.clone())?;
        // Without a logit processor no text is forced, so that any spelling may be asked for.
        if let Some(trained) = spelling.filter(|_| processor.kind() != LpKind::None) {
            processor = processor.spelled_as(trained);
        }
        constraints = subjects
            .par_iter()
            .map(|subject| processor.constraint(&subject.molecule.skeleton))
            .collect::<Result<Vec<_>>>()?;
        prompts = prompts_of(plan, tokenizer, subjects, &constraints)?;
    }
    let templates_seconds = begin.elapsed().as_secs_f64();
    let on_cpu = plan.device.name() == "cpu";
    let options = Options {
        batch: plan.batch,
        sampling: plan.sampling,
        seed: plan.seed,
        room: plan.room,
        log_probabilities: plan.log_probabilities,
        watched: closing(processor, checkpoint),
        resampling: plan.resample.map(|draws| resampling(draws, &checkpoint.tokenizer)),
        trace: plan.trace,
        cpu_clock: on_cpu.then_some(cpu_seconds),
    };
    let before = cpu_seconds();
    let generated = checkpoint.engine.generate(&prompts, &options, job)?;
    let cpu_seconds = before.zip(cpu_seconds()).map(|(before, after)| after - before).filter(|_| on_cpu);
    let judging = Judging { placeholder, strips_junk: plan.strip_junk, max_atoms: plan.max_atoms };
    let judged = judge_all(checkpoint, subjects, judging, &generated)?;
    Ok(Run {
        processor,
        placeholder: named.map(|named| named.label.clone()),
        classes: named.map(|named| named.classes.clone()).unwrap_or_default(),
        generated,
        judged,
        templates_seconds,
        cpu_seconds,
    })
}

/// Tokens that close a number, where whether a block was cut off shows in nothing but what the model would have written:
/// under position templates in the stripped dialect.
fn closing(processor: LpKind, checkpoint: &Checkpoint) -> Arc<[u32]> {
    if !processor.takes_placeholder() || checkpoint.dialect.is_fixed() {
        return Arc::default();
    }
    Vocabulary::of(&checkpoint.tokenizer).ids(|token| token.starts_with([',', '>'])).into()
}

/// Texts wait for one another where they have closed a block.
fn resampling(draws: usize, tokenizer: &Tokenizer) -> Resampling {
    Resampling { draws, block_ends: Vocabulary::of(tokenizer).ids(|token| token.contains('>')).into() }
}

/// The prompts of all molecules, with the room that their texts may take.
fn prompts_of(
    plan: &EvalPlan,
    tokenizer: &Tokenizer,
    subjects: &[Subject],
    constraints: &[Arc<dyn Constraint>],
) -> Result<Vec<Prompt>> {
    let prompt = |(subject, constraint): (&Subject, &Arc<dyn Constraint>)| {
        let Molecule { smiles, skeleton, conformers, .. } = &subject.molecule;
        let longest = tokenizer.ids(&tagged(&skeleton::fill(skeleton, WIDEST)))?.len();
        Ok(Prompt {
            tokens: tokenizer.prompt_ids(&train::prompt(smiles))?,
            generations: plan.generations.of(conformers.len()),
            constraint: constraint.clone(),
            most_tokens: plan.max_new_tokens.unwrap_or(longest * 3 / 2 + 16),
            expected_tokens: longest,
        })
    };
    subjects.par_iter().zip(constraints).map(prompt).collect()
}
