//! Generating under each logit processor, and judging what comes out.

use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use serde::Serialize;

use super::advice::advice;
use super::checkpoint::Checkpoint;
use super::environment::cpu_seconds;
use super::fillings::{Filling, fillings};
use super::judged::{Judged, judge_all};
use super::likelihood::likelihood;
use super::molecules::{Molecule, Molecules};
use super::paired::compare;
use super::plan::{EvalPlan, ModelChoice, PlaceholderChoice};
use super::record::{
    ClassPlaceholder, Comparison, Environment, EvalReport, Likelihood, Protocol, RunReport, SCHEMA, label,
};
use super::tally::run_report;
use crate::audit::{Reference, geometry, in_angstrom};
use crate::constraint::vocabulary::Vocabulary;
use crate::constraint::{Constraint, LogitProcessor, LpKind};
use crate::error::{Error, Parameter, Result};
use crate::generate::{Generated, Options, Prompt, Span};
use crate::io;
use crate::job::{InputHash, Job, Provenance};
use crate::text::{Dialect, skeleton, tagged};
use crate::tokenizer::Tokenizer;
use crate::train;

/// The widest block: a negative number of two digits before the point on each axis.
const WIDEST: &str = "-10.0001,-10.0001,-10.0001";

/// What an evaluation gives.
#[derive(Debug)]
pub struct Evaluation {
    /// The record.
    pub report: EvalReport,
    /// Every text, by run, molecule and generation.
    pub texts: Vec<TextRecord>,
    /// The phases of each run, if asked for.
    pub spans: Vec<(String, Vec<Span>)>,
}

/// One generated text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextRecord {
    /// The prompt's SMILES.
    pub smiles: String,
    /// Which of the molecule's texts.
    pub generation: usize,
    /// The logit processor.
    pub lp: &'static str,
    /// Its placeholder.
    pub placeholder: Option<String>,
    /// The model's name.
    pub model: String,
    /// What was written after the prompt, special tokens kept, the end of text dropped.
    pub text: String,
}

/// A molecule with what its texts are judged by.
pub(super) struct Subject {
    pub molecule: Molecule,
    /// None without reference conformers.
    pub reference: Option<Reference>,
}

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

/// Generates for all molecules under all logit processors of all models, and measures.
///
/// A cancelled job is no error: the record then holds what was finished.
///
/// # Errors
/// If a model cannot be loaded, a processor cannot be built for its tokenizer, or the device fails.
pub fn evaluate(plan: &EvalPlan, molecules: &Molecules, job: &Job) -> Result<Evaluation> {
    distinct_names(&plan.models)?;
    let environment = Environment::here();
    let subjects = subjects(&molecules.molecules)?;
    let corpus = molecules.spelling;
    let mut gathered = Gathered { inputs: molecules.inputs.clone(), ..Gathered::default() };
    gathered.inputs.extend(plan.placeholders.iter().filter_map(|choice| match choice {
        PlaceholderChoice::File(file) => Some(file.source.clone()),
        _ => None,
    }));
    for choice in &plan.models {
        if !gathered.interrupted {
            let mut checkpoint = Checkpoint::load(choice, plan)?;
            checkpoint.spelling = checkpoint.spelling.or(corpus);
            gathered.add(plan, checkpoint, &subjects, job)?;
        }
    }
    let Gathered { runs, comparisons, likelihoods, texts, spans, inputs, interrupted, synthetic } = gathered;
    let advice = if synthetic.is_some() { Vec::new() } else { advice(&runs, &comparisons) };
    let report = EvalReport {
        schema: SCHEMA,
        provenance: Provenance::of(inputs),
        environment,
        protocol: protocol(plan, molecules, synthetic),
        interrupted,
        runs,
        comparisons,
        likelihoods,
        advice,
    };
    Ok(Evaluation { report, texts, spans })
}

/// Rows of two models of one name could not be told apart.
fn distinct_names(models: &[ModelChoice]) -> Result<()> {
    let folders = || {
        models.iter().filter_map(|choice| match choice {
            ModelChoice::Folder(folder) => Some(folder),
            _ => None,
        })
    };
    for (at, folder) in folders().enumerate() {
        let name = io::file_name(folder);
        if let Some(other) = folders().take(at).find(|other| io::file_name(other) == name) {
            let problem =
                format!("two models are called `{name}`: {} and {}", other.display(), folder.display());
            let remedy = "their rows would be mixed: rename one folder, or evaluate one after the other";
            return Err(Error::parameter(Parameter::Model, problem, remedy));
        }
    }
    Ok(())
}

fn protocol(plan: &EvalPlan, molecules: &Molecules, synthetic: Option<String>) -> Protocol {
    Protocol {
        molecules_from: molecules.source.clone(),
        molecules: molecules.molecules.len(),
        generations: plan.generations,
        batch: plan.batch,
        preset: plan.preset.clone(),
        seed: plan.seed,
        max_new_tokens: plan.max_new_tokens,
        engine: plan.engine.name().to_owned(),
        kv_cache: plan.kv_cache().to_owned(),
        strip_junk: plan.strip_junk,
        prompts_not_in_their_spelling: molecules.foreign_prompts(),
        synthetic,
    }
}

/// What the models have given so far.
#[derive(Default)]
struct Gathered {
    runs: Vec<RunReport>,
    comparisons: Vec<Comparison>,
    likelihoods: Vec<Likelihood>,
    texts: Vec<TextRecord>,
    spans: Vec<(String, Vec<Span>)>,
    inputs: Vec<InputHash>,
    interrupted: bool,
    synthetic: Option<String>,
}

impl Gathered {
    /// Adds all runs of one model.
    fn add(
        &mut self,
        plan: &EvalPlan,
        mut checkpoint: Checkpoint,
        subjects: &[Subject],
        job: &Job,
    ) -> Result<()> {
        self.inputs.append(&mut checkpoint.inputs);
        self.synthetic = checkpoint.synthetic.map(|shape| shape.name().to_owned());
        if plan.likelihood {
            match likelihood(&checkpoint, subjects, plan.seed, job) {
                Err(Error::Interrupted) => self.interrupted = true,
                scored => self.likelihoods.extend(scored?),
            }
        }
        let done = of_model(plan, &mut checkpoint, subjects, job, &mut self.interrupted)?;
        self.runs.extend(done.iter().map(|run| run_report(plan, &checkpoint, subjects, run)));
        self.comparisons.extend(compare(&checkpoint, subjects, &done, plan.seed));
        for run in done {
            let record = |judged: &Judged| text_record(&checkpoint, subjects, &run, judged);
            self.texts.extend(run.judged.iter().map(record));
            let label = label(run.processor.name(), run.placeholder.as_deref());
            self.spans.push((format!("{} {label}", checkpoint.name), run.generated.spans));
        }
        Ok(())
    }
}

fn subjects(molecules: &[Molecule]) -> Result<Vec<Subject>> {
    let subject = |molecule: &Molecule| {
        let mut subject = Subject { molecule: molecule.clone(), reference: None };
        if !molecule.conformers.is_empty() {
            let geometry = geometry::Molecule::new(&molecule.skeleton)
                .map_err(|e| Error::input(&molecule.smiles, e, "leave this molecule out"))?;
            let conformers = molecule.conformers.iter().map(|conformer| in_angstrom(conformer)).collect();
            subject.reference = Some(Reference { molecule: geometry, conformers });
        }
        Ok(subject)
    };
    molecules.par_iter().map(subject).collect()
}

/// All runs of one model.
fn of_model(
    plan: &EvalPlan,
    checkpoint: &mut Checkpoint,
    subjects: &[Subject],
    job: &Job,
    interrupted: &mut bool,
) -> Result<Vec<Run>> {
    let fillings = fillings(plan, checkpoint, job)?;
    let mut done = Vec::new();
    for &processor in &plan.processors {
        let fillings: Vec<Option<&Filling>> = match processor.takes_placeholder() {
            true => fillings.iter().map(Some).collect(),
            false => vec![None],
        };
        for filling in fillings {
            if *interrupted {
                return Ok(done);
            }
            let run = run(plan, checkpoint, subjects, (processor, filling), job)?;
            *interrupted = run.generated.interrupted;
            done.push(run);
        }
    }
    Ok(done)
}

fn run(
    plan: &EvalPlan,
    checkpoint: &mut Checkpoint,
    subjects: &[Subject],
    (processor, filling): (LpKind, Option<&Filling>),
    job: &Job,
) -> Result<Run> {
    let begin = Instant::now();
    let placeholder = filling.map(|filling| &filling.placeholder);
    let (constraints, prompts);
    {
        let Checkpoint { tokenizer, dialect, specials, spelling, .. } = &*checkpoint;
        let mut processor =
            LogitProcessor::new(processor, tokenizer, *dialect, placeholder, specials.clone())?;
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
    let options = Options {
        batch: plan.batch,
        sampling: plan.sampling,
        seed: plan.seed,
        room: plan.room,
        log_probabilities: plan.log_probabilities,
        watched: closing(processor, checkpoint),
        trace: plan.trace,
    };
    let before = cpu_seconds();
    let generated = checkpoint.engine.generate(&prompts, &options, job)?;
    let on_cpu = plan.device.name() == "cpu";
    let cpu_seconds = before.zip(cpu_seconds()).map(|(before, after)| after - before).filter(|_| on_cpu);
    let judged = judge_all(checkpoint, subjects, (placeholder, plan.strip_junk), &generated)?;
    Ok(Run {
        processor,
        placeholder: filling.map(|filling| filling.label.clone()),
        classes: filling.map(|filling| filling.classes.clone()).unwrap_or_default(),
        generated,
        judged,
        templates_seconds,
        cpu_seconds,
    })
}

/// Tokens that close a number, where whether a block was cut off shows in nothing but what the model would have written:
/// under position templates in the stripped dialect.
fn closing(processor: LpKind, checkpoint: &Checkpoint) -> Arc<[u32]> {
    if !processor.takes_placeholder() || checkpoint.dialect == Dialect::Fixed {
        return Arc::default();
    }
    Vocabulary::of(&checkpoint.tokenizer).ids(|token| token.starts_with([',', '>'])).into()
}

/// The prompts of all molecules, with the room that their texts may take.
fn prompts_of(
    plan: &EvalPlan,
    tokenizer: &Tokenizer,
    subjects: &[Subject],
    constraints: &[Arc<dyn Constraint>],
) -> Result<Vec<Prompt>> {
    let prompt = |(subject, constraint): (&Subject, &Arc<dyn Constraint>)| {
        let Molecule { smiles, skeleton, .. } = &subject.molecule;
        let longest = tokenizer.ids(&tagged(&skeleton::fill(skeleton, WIDEST)))?.len();
        Ok(Prompt {
            tokens: tokenizer.prompt_ids(&train::prompt(smiles))?,
            generations: plan.generations,
            constraint: constraint.clone(),
            most_tokens: plan.max_new_tokens.unwrap_or(longest * 3 / 2 + 16),
            expected_tokens: longest,
        })
    };
    subjects.par_iter().zip(constraints).map(prompt).collect()
}

fn text_record(checkpoint: &Checkpoint, subjects: &[Subject], run: &Run, judged: &Judged) -> TextRecord {
    TextRecord {
        smiles: subjects[judged.subject].molecule.smiles.clone(),
        generation: judged.generation,
        lp: run.processor.name(),
        placeholder: run.placeholder.clone(),
        model: checkpoint.name.clone(),
        text: judged.text.clone(),
    }
}
