//! Generates texts with each logit processor, and judges them.

use serde::Serialize;

use super::advice::{advice, self_checks, speed_advice};
use super::by_text::TextFigures;
use super::checkpoint::Checkpoint;
use super::chemistry::of_references;
use super::encoding::settle;
use super::energies::{Answered, unless_cancelled};
use super::judged::Judged;
use super::kept::Kept;
use super::likelihood::{MoleculeNats, likelihood, score};
use super::measured::measure;
use super::molecule_records::{MoleculeRecord, molecule_records};
use super::molecules::Molecules;
use super::paired::{MeasuredRun, compare};
use super::placeholders::{NamedPlaceholder, placeholders};
use super::plan::{EvalPlan, Generations, ModelChoice, PlaceholderChoice};
use super::protocol::protocol;
use super::record::{EvalReport, Likelihood, PairedComparison, RunReport, SCHEMA, Unseen};
use super::run::{Processor, Run, generate, judge};
use super::subject::Subject;
use super::tally::run_report;
use super::texts::{SameTexts, TextRecord};
use crate::generate::{Span, Verdict};
use crate::model::Synthetic;
use crate::parameter;
use drift_core::checkpoint::folder_name;
use drift_core::constraint::ProcessorKind;
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result};
use drift_core::job::{InputHash, Job, Provenance};
use drift_data::audit::EnergyReport;
use drift_data::corpus::{EmbeddedCorpus, Part};

/// The result of an evaluation.
#[derive(Debug)]
pub struct Evaluation {
    /// The record.
    pub report: EvalReport,
    /// Every text, ordered by run, molecule and generation.
    pub texts: Vec<TextRecord>,
    /// One entry for every molecule of every run.
    pub molecules: Vec<MoleculeRecord>,
    /// The phases of each run, if requested.
    pub spans: Vec<(String, Vec<Span>)>,
    /// The results for each text; empty unless the plan keeps them.
    pub by_text: TextFigures,
}

/// Generates texts for all molecules with all logit processors of all models, and measures them. Texts in `kept` are not generated
/// again, and new texts are stored in it as soon as they are finished.
///
/// A cancelled job is not an error: the record then contains what was finished.
///
/// # Errors
/// If a model cannot be loaded, a processor cannot be built for its tokenizer, or the device fails.
pub fn evaluate(plan: &EvalPlan, molecules: &Molecules, kept: &mut Kept, job: &Job) -> Result<Evaluation> {
    check(plan, molecules, kept)?;
    let environment = kept.environment();
    let subjects = Subject::all(&molecules.molecules)?;
    let mut gathered = Gathered { inputs: inputs(plan, molecules), ..Gathered::default() };
    for model in 0..plan.models.len() {
        if !gathered.interrupted && !kept.lacks(model) {
            let begun = generated(plan, model, molecules, kept, job)?;
            gathered.add(plan, begun, (molecules, &subjects), kept, job)?;
        }
    }
    let energy = gathered.energy_report(plan, &subjects, job)?;
    if !gathered.interrupted {
        kept.done()?;
    }
    let runs = gathered.runs;
    let other = match gathered.synthetic {
        Some(_) => speed_advice(&runs),
        None => advice(&runs, &gathered.comparisons),
    };
    // The advice about who computed the texts precedes the advice about the texts.
    let advice = self_checks(&runs).into_iter().chain(gathered.notes).chain(other).collect();
    let report = EvalReport {
        schema: SCHEMA.to_owned(),
        provenance: Provenance::from_inputs(gathered.inputs),
        environment,
        protocol: protocol(plan, molecules, gathered.synthetic),
        interrupted: gathered.interrupted || kept.is_partial,
        runs,
        comparisons: gathered.comparisons,
        reference_chemistry: of_references(&subjects),
        likelihoods: gathered.likelihoods,
        advice,
        same_texts: gathered.same_texts,
        energy,
    };
    let Gathered { texts, records: molecules, spans, by_text, .. } = gathered;
    Ok(Evaluation { report, texts, molecules, spans, by_text })
}

/// The files from which molecules and placeholders were read.
fn inputs(plan: &EvalPlan, molecules: &Molecules) -> Vec<InputHash> {
    let file = |choice: &PlaceholderChoice| match choice {
        PlaceholderChoice::File(file) => Some(file.source.clone()),
        _ => None,
    };
    molecules.inputs.iter().cloned().chain(plan.placeholders.iter().filter_map(file)).collect()
}

/// The progress of an evaluation's shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ShardDone {
    /// The number of finished texts, over all logit processors of all models.
    pub texts: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// Runs a shard: generates and scores for its molecules, and stores the results. They are judged when shards are merged.
///
/// # Errors
/// The errors of [`evaluate`].
pub fn evaluate_shard(
    plan: &EvalPlan,
    molecules: &Molecules,
    kept: &mut Kept,
    job: &Job,
) -> Result<ShardDone> {
    check(plan, molecules, kept)?;
    kept.environment();
    let mut interrupted = false;
    for model in 0..plan.models.len() {
        if !interrupted {
            interrupted = generated(plan, model, molecules, kept, job)?.interrupted;
        }
    }
    if !interrupted {
        kept.done()?;
    }
    Ok(ShardDone { texts: kept.texts(), interrupted })
}

/// Refuses plans that cannot work, or that do not match the stored results, before anything is loaded.
///
/// # Errors
/// If the plan is refused, or the inputs cannot be stored.
pub fn check(plan: &EvalPlan, molecules: &Molecules, kept: &mut Kept) -> Result<()> {
    distinct_names(&plan.models)?;
    check_references(plan, molecules)?;
    kept.keep_inputs(&inputs(plan, molecules))
}

/// A model whose texts are stored.
struct Begun {
    /// The index of the model in the plan.
    model: usize,
    checkpoint: Checkpoint,
    placeholders: Vec<NamedPlaceholder>,
    /// The phases of the steps of each run that was started, if requested.
    spans: Vec<Vec<Span>>,
    interrupted: bool,
}

/// The runs of a model, in order: each logit processor, combined with each placeholder if it takes one.
fn processors<'p>(plan: &EvalPlan, placeholders: &'p [NamedPlaceholder]) -> Vec<Processor<'p>> {
    let of = |processor: &ProcessorKind| -> Vec<Processor<'p>> {
        match processor.takes_placeholder() {
            true => placeholders.iter().map(|named| (*processor, Some(named))).collect(),
            false => vec![(*processor, None)],
        }
    };
    plan.processors.iter().flat_map(of).collect()
}

/// Loads a model, then scores and generates what is not stored yet.
fn generated(
    plan: &EvalPlan,
    model: usize,
    molecules: &Molecules,
    kept: &mut Kept,
    job: &Job,
) -> Result<Begun> {
    // Shards are judged in the encoding in which their texts were written; it is not determined again.
    let known = kept.model(model).filter(|_| kept.is_over()).cloned();
    let mut checkpoint = Checkpoint::load(&plan.models[model], plan, known.as_ref(), job)?;
    checkpoint.spelling = checkpoint.spelling.or(molecules.spelling);
    match &known {
        Some(known) => {
            if checkpoint.tokenizer.source != known.tokenizer {
                let problem = "is not the tokenizer that texts were written with";
                return Err(Error::input(&checkpoint.tokenizer.source.name, problem, "give that one"));
            }
            (checkpoint.encoding, checkpoint.encoding_from) = (known.encoding, known.encoding_from);
        }
        None => {
            settle(plan, &mut checkpoint, molecules, job)?;
            kept.keep_model(model, checkpoint.kept())?;
        }
    }
    let placeholders = placeholders(plan, &checkpoint, job)?;
    let mut begun = Begun { model, checkpoint, placeholders, spans: Vec::new(), interrupted: false };
    if plan.likelihood {
        match score(&mut begun.checkpoint, &molecules.molecules, (&mut *kept, model), job) {
            // A cancelled job is not an error: what was finished is still judged.
            Err(Error::Interrupted) => begun.interrupted = true,
            scored => scored?,
        }
    }
    for (run, processor) in processors(plan, &begun.placeholders).into_iter().enumerate() {
        if !begun.interrupted {
            let of = (&mut *kept, (model, run));
            let (spans, interrupted) =
                generate(plan, &mut begun.checkpoint, &molecules.molecules, processor, of, job)?;
            begun.spans.push(spans);
            begun.interrupted = interrupted;
        }
    }
    Ok(begun)
}

/// Refuses options that need references if there are none.
fn check_references(plan: &EvalPlan, molecules: &Molecules) -> Result<()> {
    let all = &molecules.molecules;
    let has_none = all.iter().all(|molecule| molecule.conformers.is_empty());
    let counts_none = all.iter().all(|molecule| molecule.conformer_count() == 0);
    let remedy = format!("give them with {}, or {}", parameter::REFERENCES, parameter::CORPUS);
    match plan.generations {
        Generations::PerReference(_) if counts_none => {
            let place = format!("{} {}", parameter::GENERATIONS, plan.generations);
            let problem = "texts are to follow the reference conformers of each molecule, and there are none";
            Err(Error::input(place, problem, format!("{remedy}, or a number")))
        }
        _ if plan.likelihood && has_none => {
            let problem = "there are no reference conformers to score";
            Err(Error::parameter(parameter::LIKELIHOOD, problem, remedy))
        }
        _ => Ok(()),
    }
}

/// Whether the model is known not to have been trained on these molecules.
fn unseen(checkpoint: &Checkpoint, molecules: &Molecules) -> Unseen {
    if checkpoint.synthetic.is_some() {
        return Unseen::Yes;
    }
    let Some(trained_on) = &checkpoint.trained_on else { return Unseen::Unknown };
    // The training data of reference checkpoints contains no molecule of the small corpus.
    let small = EmbeddedCorpus::Small;
    if trained_on.contains(&small.trained_on()) && molecules.corpus == [small.source()] {
        return Unseen::Yes;
    }
    let mut known = molecules.corpus.iter().map(|input| trained_on.contains(&input.sha256));
    let are_test = molecules.molecules.iter().all(|molecule| molecule.part == Some(Part::Test));
    match (known.clone().all(|known| known) && !molecules.corpus.is_empty(), are_test) {
        // Training leaves out the test part of its corpus, so the same files together with that part are a proof.
        (true, true) => Unseen::Yes,
        (_, false) if known.any(|known| known) => Unseen::No,
        _ => Unseen::Unknown,
    }
}

/// Refuses models with equal names, whose rows could not be distinguished.
fn distinct_names(models: &[ModelChoice]) -> Result<()> {
    let folders = || {
        models.iter().filter_map(|choice| match choice {
            ModelChoice::Folder(folder) => Some(folder),
            _ => None,
        })
    };
    for (at, folder) in folders().enumerate() {
        let name = folder_name(folder);
        if let Some(other) = folders().take(at).find(|other| folder_name(other) == name) {
            let problem =
                format!("two models are called `{name}`: {} and {}", other.display(), folder.display());
            let remedy = "their rows would be mixed: rename one folder, or evaluate one after the other";
            return Err(Error::parameter(parameter::MODEL, problem, remedy));
        }
    }
    Ok(())
}

/// The results of the models so far.
#[derive(Default)]
struct Gathered {
    runs: Vec<RunReport>,
    comparisons: Vec<PairedComparison>,
    likelihoods: Vec<Likelihood>,
    /// The nats of the first model, by molecule.
    first_nats: Option<MoleculeNats>,
    texts: Vec<TextRecord>,
    records: Vec<MoleculeRecord>,
    by_text: TextFigures,
    spans: Vec<(String, Vec<Span>)>,
    inputs: Vec<InputHash>,
    interrupted: bool,
    synthetic: Option<Synthetic>,
    same_texts: Option<SameTexts>,
    energies: Answered,
    /// Notes on computations that differed from what was requested.
    notes: Vec<String>,
}

impl Gathered {
    /// Judges all runs of a model and adds their results.
    fn add(
        &mut self,
        plan: &EvalPlan,
        begun: Begun,
        (molecules, subjects): (&Molecules, &[Subject]),
        kept: &mut Kept,
        job: &Job,
    ) -> Result<()> {
        let Begun { model, mut checkpoint, placeholders, spans, interrupted } = begun;
        checkpoint.measure();
        self.interrupted = interrupted;
        self.inputs.append(&mut checkpoint.inputs);
        self.synthetic = checkpoint.synthetic;
        let unseen = unseen(&checkpoint, molecules);
        let mut nats = MoleculeNats::new();
        if plan.likelihood {
            let scored = std::mem::take(kept.nats(model));
            let first = self.first_nats.as_ref();
            let (scored, by_molecule) =
                likelihood(&checkpoint, &molecules.molecules, &scored, first, plan.seed)?;
            self.likelihoods.extend(scored);
            nats = by_molecule;
            self.first_nats.get_or_insert_with(|| nats.clone());
        }
        let mut done = Vec::new();
        // If the job was cancelled, only the first runs were started.
        for (run, processor) in processors(plan, &placeholders).into_iter().take(spans.len()).enumerate() {
            done.push(judge(plan, &checkpoint, subjects, processor, kept.run((model, run)))?);
        }
        // If the self-check of a run already reports the problem, it is not reported twice.
        let is_told = |run: &Run| {
            run.generated.self_check.as_ref().is_some_and(|check| check.verdict != Verdict::Passed)
        };
        self.notes.extend(checkpoint.note().filter(|_| !done.iter().any(is_told)));
        if let Some(other) = &plan.same_as {
            let same = self.same_texts.get_or_insert_with(|| SameTexts::beside(other));
            for (processor, run) in processors(plan, &placeholders).into_iter().zip(&done) {
                same.add((plan, other), &mut checkpoint, subjects, (processor, run))?;
            }
        }
        let measured: Vec<_> = done.iter().map(|run| measure(subjects, &run.judged)).collect();
        for (run, measured) in done.iter().zip(&measured) {
            let report = run_report(plan, &checkpoint, subjects, run, measured);
            self.runs.push(RunReport { unseen, ..report });
            if plan.by_text {
                self.by_text.add(&checkpoint, subjects, (run, measured));
            }
            self.ask_energies(plan, (&checkpoint, subjects), run, job)?;
            self.records.extend(molecule_records(plan, &checkpoint, subjects, (run, measured), &nats));
        }
        let pairs: Vec<MeasuredRun<'_>> =
            done.iter().zip(&measured).map(|(run, molecules)| MeasuredRun { run, molecules }).collect();
        self.comparisons.extend(compare(&checkpoint, &pairs, plan.seed));
        for (run, spans) in done.into_iter().zip(spans) {
            let record = |judged: &Judged| text_record(&checkpoint, subjects, &run, judged);
            self.texts.extend(run.judged.iter().map(record));
            let label = run.row_label(&checkpoint).processor();
            self.spans.push((format!("{} {label}", checkpoint.name), spans));
        }
        Ok(())
    }

    /// Requests the energies of a run's texts, if the plan has an energy program and the job was not interrupted.
    fn ask_energies(
        &mut self,
        plan: &EvalPlan,
        (checkpoint, subjects): (&Checkpoint, &[Subject]),
        run: &Run,
        job: &Job,
    ) -> Result<()> {
        let Some(energies) = plan.energy.as_ref().filter(|_| !self.interrupted) else { return Ok(()) };
        let label = run.row_label(checkpoint).processor();
        let texts = (&*checkpoint.name, &*label, &*run.judged);
        let asked = unless_cancelled(self.energies.add(energies, subjects, texts, job))?;
        self.interrupted = asked.is_none();
        Ok(())
    }

    /// The report on energies; `None` if the job was interrupted.
    fn energy_report(
        &mut self,
        plan: &EvalPlan,
        subjects: &[Subject],
        job: &Job,
    ) -> Result<Option<EnergyReport>> {
        let Some(energies) = plan.energy.as_ref().filter(|_| !self.interrupted) else { return Ok(None) };
        let report = self.energies.report(energies, subjects, job)?;
        self.interrupted = report.is_none();
        Ok(report)
    }
}

fn text_record(checkpoint: &Checkpoint, subjects: &[Subject], run: &Run, judged: &Judged) -> TextRecord {
    let subject = &subjects[judged.subject];
    TextRecord {
        smiles: subject.molecule.smiles.clone(),
        geom_smiles: subject.pool.as_ref().map(|pool| pool.molecule.smiles.clone()),
        generation: judged.generation,
        lp: run.processor,
        placeholder: run.placeholder.clone(),
        model: checkpoint.name.clone(),
        encoding: Some(checkpoint.encoding).filter(|encoding| !Encoding::ALL.contains(encoding)),
        text: judged.text.clone(),
    }
}
