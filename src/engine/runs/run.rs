//! Generation under one logit processor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::answers::{apart, check_form, examples, prompt_ids};
use super::checkpoint::Checkpoint;
use super::environment::cpu_seconds;
use super::finished::RunPlace;
use super::kept::TextStore;
use super::kept_run::KeptRun;
use super::placeholders::NamedPlaceholder;
use super::plan::GeneratePlan;
use super::text_seconds::{TextPlace, TextSeconds};
use super::written::WrittenText;
use crate::generate::{GenerationResult, Options, Prompt, Resampling, SelfCheck, SelfChecking, Span};
use drift_core::constraint::vocabulary::Vocabulary;
use drift_core::constraint::{Constraint, LogitProcessor, ProcessorKind};
use drift_core::text::{skeleton, tagged};
use drift_core::{Encoding, Job, Result, Tokenizer};
use drift_data::audit::pairs::BatchTimes;
use drift_data::audit::{RowLabel, TextLine};
use drift_data::generation::{ClassPlaceholder, SpeedMeasure};
use drift_data::prompts::{Molecules, PromptMolecule};
use drift_tune::design::advice;

/// The widest block: on each axis a negative number with two digits before the point.
const WIDEST: &str = "-10.0001,-10.0001,-10.0001";

/// A finished run.
pub(crate) struct Run {
    pub processor: ProcessorKind,
    /// The label of its placeholder.
    pub placeholder: Option<String>,
    /// The placeholder of each class of block, if there are classes.
    pub classes: Vec<ClassPlaceholder>,
    pub generated: GenerationResult,
    /// The text of each generated text, in the same order.
    pub written: Vec<WrittenText>,
    /// The share of each generated text in the time of the run.
    pub text_seconds: BTreeMap<TextPlace, TextSeconds>,
    pub templates_seconds: f64,
    /// The CPU seconds of generation; `None` on a GPU, or if the system does not report them.
    pub cpu_seconds: Option<f64>,
    /// The peak memory of the process in bytes; `None` if the system does not report it.
    pub peak_memory_bytes: Option<u64>,
}

impl Run {
    /// Returns what is known of its texts, which `checkpoint` wrote.
    pub(crate) fn row_label(&self, checkpoint: &Checkpoint) -> RowLabel {
        RowLabel::new(&checkpoint.name, self.processor, self.placeholder.as_deref())
    }

    /// Returns the lines of its texts, which `checkpoint` wrote, in order and without their cost.
    pub(crate) fn lines(
        &self,
        checkpoint: &Checkpoint,
        molecules: &Molecules,
    ) -> impl Iterator<Item = TextLine> {
        let texts = self.generated.samples.iter().zip(&self.written);
        texts.map(|(sample, written)| {
            let molecule = &molecules.molecules[sample.prompt];
            TextLine {
                smiles: molecule.smiles.clone(),
                geom_smiles: molecule.pool.as_ref().map(|pool| pool.smiles.clone()),
                generation: sample.generation,
                lp: self.processor,
                placeholder: self.placeholder.clone(),
                model: checkpoint.name.clone(),
                // A line without an encoding has decimals.
                encoding: Some(checkpoint.encoding).filter(|encoding| !Encoding::ALL.contains(encoding)),
                text: written.text.clone(),
                cost: None,
            }
        })
    }

    /// Strips the junk from the numbers of its texts.
    pub(crate) fn strip_junk(&mut self, encoding: Encoding) {
        self.written =
            std::mem::take(&mut self.written).into_par_iter().map(|one| one.stripped(encoding)).collect();
    }

    /// Returns the wall time in seconds, including templates.
    pub(crate) fn total_seconds(&self) -> f64 {
        self.generated.timing.total() + self.templates_seconds
    }

    /// Returns the wall time in seconds, including templates but without the start of a device.
    pub(crate) fn generating_seconds(&self) -> f64 {
        self.total_seconds() - self.generated.timing.start
    }

    /// Returns the texts per second of wall time, including templates but without the start of a device.
    pub(crate) fn conformers_per_second(&self) -> f64 {
        self.generated.samples.len() as f64 / self.generating_seconds().max(f64::MIN_POSITIVE)
    }

    /// Returns the time of each batch: CPU time if it is known for all batches, otherwise wall time.
    pub(crate) fn pace(&self) -> BatchTimes {
        let batches = &self.generated.batches;
        let texts = self.generated.samples.len() as u64;
        match batches.iter().map(|batch| batch.cpu).collect::<Option<Vec<f64>>>() {
            Some(seconds) => BatchTimes { measure: SpeedMeasure::Cpu, seconds, texts },
            None => BatchTimes {
                measure: SpeedMeasure::Wall,
                seconds: batches.iter().map(|batch| batch.wall).collect(),
                texts,
            },
        }
    }
}

/// A logit processor of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunProcessor<'p> {
    pub kind: ProcessorKind,
    /// Its placeholder, if it takes one.
    pub placeholder: Option<&'p NamedPlaceholder>,
}

/// Generates the texts that are not kept yet under one logit processor, for the molecules of the shard. Returns the phases of each
/// step if requested, and whether the job was cancelled.
///
/// # Errors
/// If the processor cannot be built for the tokenizer, the device fails, or the texts cannot be kept.
pub(crate) fn generate(
    plan: &GeneratePlan,
    checkpoint: &mut Checkpoint,
    molecules: &[PromptMolecule],
    processor: RunProcessor<'_>,
    (kept, place): (&mut TextStore, RunPlace),
    job: &Job,
) -> Result<(Vec<Span>, bool)> {
    let begin = Instant::now();
    if plan.resample.is_some() {
        kept.run(place).forget_parts_of_groups();
    }
    let lacking = lacking(plan, molecules, kept, place);
    if lacking.is_empty() || kept.is_over() {
        return Ok((Vec::new(), false));
    }
    check_form(&checkpoint.tokenizer, plan.form)?;
    let made = logit_processor(checkpoint, processor)?;
    let made = made.answering(plan.form).of_strength(plan.geometry.strength);
    let constraints = lacking.par_iter().map(|lacking| {
        let PromptMolecule { skeleton, smiles, .. } = lacking.molecule;
        made.constraint_of(skeleton, smiles)
    });
    let constraints = constraints.collect::<Result<Vec<_>>>()?;
    let prompts = prompts_of(plan, checkpoint, &lacking, &constraints)?;
    let templates_seconds = begin.elapsed().as_secs_f64();
    let on_cpu = plan.device.name() == "cpu";
    let options = Options {
        batch: plan.batch,
        sampling: plan.sampling,
        seed: plan.seed,
        room: plan.room,
        log_probabilities: plan.log_probabilities,
        watched: closing(processor.kind, checkpoint),
        resampling: plan.resample.map(|draws| resampling(draws, &checkpoint.tokenizer)),
        backtrack: plan.geometry.backtrack,
        trace: plan.trace,
        cpu_clock: on_cpu.then_some(cpu_seconds),
        self_check: self_check(plan, checkpoint, processor),
    };
    let mut keeper = kept.keeper(place, templates_seconds, on_cpu);
    let mut generated = checkpoint.engine()?.generate_keeping(&prompts, &options, &mut keeper, job)?;
    let given_up = plan.given_up.as_ref().map(SelfCheck::failed);
    if let Some(check) = generated.self_check.take().or(given_up) {
        kept.keep_check(place, check)?;
    }
    kept.run(place).take(&mut generated);
    Ok((generated.spans, generated.interrupted))
}

/// Returns the settings of the self-check of a device. Evidence of a failed check goes to a folder for this run.
fn self_check(plan: &GeneratePlan, checkpoint: &Checkpoint, processor: RunProcessor<'_>) -> SelfChecking {
    let label = processor.placeholder.map(|named| &*named.label);
    let label = RowLabel::new(&checkpoint.name, processor.kind, label).processor();
    let name: String = format!("{}-{label}", checkpoint.name)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' })
        .collect();
    let evidence = plan.self_check.evidence.as_ref().map(|folder| folder.join(name));
    SelfChecking { evidence, ..plan.self_check.clone() }
}

/// Makes a logit processor for a model.
///
/// # Errors
/// If it cannot be built for the tokenizer.
pub(crate) fn logit_processor(
    checkpoint: &Checkpoint,
    processor: RunProcessor<'_>,
) -> Result<LogitProcessor> {
    let Checkpoint { tokenizer, encoding, specials, spelling, .. } = checkpoint;
    let placeholder = processor.placeholder.map(|named| &named.placeholder);
    let made = advice::logit_processor(processor.kind, tokenizer, *encoding, placeholder, specials.clone())?;
    // Without a logit processor no text is forced, so any spelling is possible.
    Ok(match spelling.filter(|_| made.kind() != ProcessorKind::None) {
        Some(trained) => made.spelled_as(trained),
        None => made,
    })
}

/// Returns a finished run.
///
/// # Errors
/// If a token does not belong to the tokenizer.
pub(crate) fn finished_run(
    plan: &GeneratePlan,
    checkpoint: &Checkpoint,
    processor: RunProcessor<'_>,
    kept: &mut KeptRun,
) -> Result<Run> {
    let text_seconds = kept.text_seconds();
    let mut generated = kept.generated();
    generated.samples = apart(&checkpoint.tokenizer, plan.form, generated.samples);
    let written = generated.samples.par_iter();
    let written = written.map(|sample| WrittenText::new(checkpoint, processor.kind, plan.form, sample));
    Ok(Run {
        written: written.collect::<Result<_>>()?,
        processor: processor.kind,
        placeholder: processor.placeholder.map(|named| named.label.clone()),
        classes: processor.placeholder.map(|named| named.classes.clone()).unwrap_or_default(),
        generated,
        text_seconds,
        templates_seconds: kept.spent.templates_seconds,
        cpu_seconds: kept.spent.cpu_seconds,
        peak_memory_bytes: kept.spent.peak_memory_bytes,
    })
}

/// Returns the tokens that close a number, if only the model's preferred token there shows whether a block was truncated: under position
/// templates in the stripped encoding.
fn closing(processor: ProcessorKind, checkpoint: &Checkpoint) -> Arc<[u32]> {
    if !processor.takes_placeholder() || checkpoint.encoding.is_fixed() {
        return Arc::default();
    }
    Vocabulary::from_tokenizer(&checkpoint.tokenizer).ids(|token| token.starts_with([',', '>'])).into()
}

/// Texts wait for one another when they have closed a block.
fn resampling(draws: usize, tokenizer: &Tokenizer) -> Resampling {
    Resampling {
        draws,
        block_ends: Vocabulary::from_tokenizer(tokenizer).ids(|token| token.contains('>')).into(),
    }
}

/// A molecule with missing texts.
struct MissingTexts<'m> {
    number: usize,
    molecule: &'m PromptMolecule,
    generations: usize,
    done: Arc<[usize]>,
}

/// Returns the molecules of the shard with missing texts.
fn lacking<'m>(
    plan: &GeneratePlan,
    molecules: &'m [PromptMolecule],
    kept: &mut TextStore,
    place: RunPlace,
) -> Vec<MissingTexts<'m>> {
    let mut done = kept.run(place).done();
    let of = |(number, molecule): (usize, &'m PromptMolecule)| {
        let generations = plan.generations.of(molecule.conformer_count());
        let done: Arc<[usize]> = done.remove(&number).unwrap_or_default().into();
        let lacks = kept.has(number) && done.len() < generations;
        lacks.then_some(MissingTexts { number, molecule, generations, done })
    };
    molecules.iter().enumerate().filter_map(of).collect()
}

/// Returns the inside of a slot with as many tokens as any slot can have.
fn widest(encoding: Encoding) -> String {
    if encoding.is_decimal() {
        return WIDEST.to_owned();
    }
    encoding.numbers_text(&std::array::from_fn(|axis| encoding.number().limits(axis).1))
}

/// Returns the prompts of molecules, with the lengths that their texts may need.
fn prompts_of(
    plan: &GeneratePlan,
    checkpoint: &Checkpoint,
    lacking: &[MissingTexts<'_>],
    constraints: &[Arc<dyn Constraint>],
) -> Result<Vec<Prompt>> {
    let (tokenizer, encoding) = (&checkpoint.tokenizer, checkpoint.encoding);
    let examples = examples(plan, checkpoint)?;
    let prompt = |(lacking, constraint): (&MissingTexts<'_>, &Arc<dyn Constraint>)| {
        let PromptMolecule { smiles, skeleton, .. } = lacking.molecule;
        let widest = widest(encoding);
        let one = tokenizer.ids(&tagged(&skeleton::fill(skeleton, &widest, encoding)))?.len();
        let longest = one * plan.form.conformers.max(1);
        Ok(Prompt {
            tokens: prompt_ids(plan, tokenizer, &examples, smiles)?,
            number: lacking.number,
            generations: lacking.generations,
            done: lacking.done.clone(),
            constraint: constraint.clone(),
            most_tokens: plan.max_new_tokens.unwrap_or(longest * 3 / 2 + 16),
            expected_tokens: longest,
        })
    };
    lacking.par_iter().zip(constraints).map(prompt).collect()
}
