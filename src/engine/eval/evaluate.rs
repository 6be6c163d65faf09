//! Generates texts with each logit processor, and judges them.

use super::advice::{advice, self_checks, speed_advice};
use super::by_text::TextFigures;
use super::checkpoint::Checkpoint;
use super::chemistry::of_references;
use super::energies::{Answered, unless_cancelled};
use super::generation::{
    LoadedModel, ShardDone, check_generation, give_references, inputs, processors, unseen,
};
use super::judged::Judged;
use super::kept::Kept;
use super::likelihood::{MoleculeNats, likelihood, score};
use super::measured::measure;
use super::molecule_records::{MoleculeRecord, molecule_records};
use super::paired::{MeasuredRun, compare};
use super::plan::EvalPlan;
use super::protocol::protocol;
use super::record::{EvalReport, Likelihood, PairedComparison, RunReport, SCHEMA};
use super::run::{Run, judge};
use super::subject::Subject;
use super::tally::run_report;
use super::texts::SameTexts;
use super::texts_file::named_encoding;
use crate::generate::{Span, Verdict};
use crate::model::Synthetic;
use crate::parameter;
use drift_core::error::{Error, Result};
use drift_core::job::{InputHash, Job, Provenance};
use drift_data::audit::{EnergyReport, TextLine};
use drift_data::prompts::Molecules;

/// The result of an evaluation.
#[derive(Debug)]
pub struct Evaluation {
    /// The record.
    pub report: EvalReport,
    /// Every text, ordered by run, molecule and generation.
    pub texts: Vec<TextLine>,
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
    let mut gathered = Gathered { inputs: inputs(&plan.generate, molecules), ..Gathered::default() };
    for model in 0..plan.generate.models.len() {
        if !gathered.interrupted && !kept.lacks(model) {
            let loaded = generated(plan, model, molecules, kept, job)?;
            gathered.add(plan, loaded, (molecules, &subjects), kept, job)?;
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
    ShardDone::of_models(plan.generate.models.len(), kept, &mut |model, kept| {
        Ok(generated(plan, model, molecules, kept, job)?.interrupted)
    })
}

/// Refuses plans that cannot work, or that do not match the stored results, before anything is loaded.
///
/// # Errors
/// If the plan is refused, or the inputs cannot be stored.
pub fn check(plan: &EvalPlan, molecules: &Molecules, kept: &mut Kept) -> Result<()> {
    let has_none = molecules.molecules.iter().all(|molecule| molecule.conformers.is_empty());
    if plan.likelihood && has_none {
        let problem = "there are no reference conformers to score";
        return Err(Error::parameter(parameter::LIKELIHOOD, problem, give_references()));
    }
    check_generation(&plan.generate, molecules, kept)
}

/// Loads a model, then scores and generates what is not stored yet.
fn generated(
    plan: &EvalPlan,
    model: usize,
    molecules: &Molecules,
    kept: &mut Kept,
    job: &Job,
) -> Result<LoadedModel> {
    let mut loaded = LoadedModel::load(&plan.generate, model, molecules, kept, job)?;
    if plan.likelihood {
        match score(&mut loaded.checkpoint, &molecules.molecules, (&mut *kept, model), job) {
            // A cancelled job is not an error: what was finished is still judged.
            Err(Error::Interrupted) => loaded.interrupted = true,
            scored => scored?,
        }
    }
    loaded.generate(&plan.generate, molecules, kept, job)?;
    Ok(loaded)
}

/// The results of the models so far.
#[derive(Default)]
struct Gathered {
    runs: Vec<RunReport>,
    comparisons: Vec<PairedComparison>,
    likelihoods: Vec<Likelihood>,
    /// The nats of the first model, by molecule.
    first_nats: Option<MoleculeNats>,
    texts: Vec<TextLine>,
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
        mut loaded: LoadedModel,
        (molecules, subjects): (&Molecules, &[Subject]),
        kept: &mut Kept,
        job: &Job,
    ) -> Result<()> {
        loaded.checkpoint.measure();
        self.interrupted = loaded.interrupted;
        self.inputs.append(&mut loaded.checkpoint.inputs);
        let checkpoint = &loaded.checkpoint;
        self.synthetic = checkpoint.synthetic;
        let unseen = unseen(checkpoint, molecules);
        let mut nats = MoleculeNats::new();
        if plan.likelihood {
            let scored = std::mem::take(kept.nats(loaded.index));
            let first = self.first_nats.as_ref();
            let (scored, by_molecule) =
                likelihood(checkpoint, &molecules.molecules, &scored, first, plan.generate.seed)?;
            self.likelihoods.extend(scored);
            nats = by_molecule;
            self.first_nats.get_or_insert_with(|| nats.clone());
        }
        let mut done = Vec::new();
        for (run, processor) in loaded.started(&plan.generate).into_iter().enumerate() {
            done.push(judge(plan, checkpoint, subjects, processor, kept.run((loaded.index, run)))?);
        }
        // If the self-check of a run already reports the problem, it is not reported twice.
        let is_told = |run: &Run| {
            run.generated.self_check.as_ref().is_some_and(|check| check.verdict != Verdict::Passed)
        };
        self.notes.extend(checkpoint.note().filter(|_| !done.iter().any(is_told)));
        if let Some(other) = &plan.same_as {
            let same = self.same_texts.get_or_insert_with(|| SameTexts::beside(other));
            for (processor, run) in processors(&plan.generate, &loaded.placeholders).into_iter().zip(&done) {
                same.add((&plan.generate, other), &mut loaded.checkpoint, subjects, (processor, run))?;
            }
        }
        let checkpoint = &loaded.checkpoint;
        let measured: Vec<_> = done.iter().map(|run| measure(subjects, &run.judged)).collect();
        for (run, measured) in done.iter().zip(&measured) {
            self.runs.push(run_report(plan, (checkpoint, unseen), subjects, run, measured));
            if plan.by_text {
                self.by_text.add(checkpoint, subjects, (run, measured));
            }
            self.ask_energies(plan, (checkpoint, subjects), run, job)?;
            self.records.extend(molecule_records(plan, checkpoint, subjects, (run, measured), &nats));
        }
        let pairs: Vec<MeasuredRun<'_>> =
            done.iter().zip(&measured).map(|(run, molecules)| MeasuredRun { run, molecules }).collect();
        self.comparisons.extend(compare(checkpoint, &pairs, plan.generate.seed));
        for (run, spans) in done.into_iter().zip(loaded.spans) {
            let record = |judged: &Judged| text_record(checkpoint, subjects, &run, judged);
            self.texts.extend(run.judged.iter().map(record));
            let label = run.row_label(checkpoint).processor();
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

fn text_record(checkpoint: &Checkpoint, subjects: &[Subject], run: &Run, judged: &Judged) -> TextLine {
    let subject = &subjects[judged.subject];
    TextLine {
        smiles: subject.molecule.smiles.clone(),
        geom_smiles: subject.pool.as_ref().map(|pool| pool.molecule.smiles.clone()),
        generation: judged.generation,
        lp: run.processor,
        placeholder: run.placeholder.clone(),
        model: checkpoint.name.clone(),
        encoding: named_encoding(checkpoint),
        text: judged.text.clone(),
        cost: None,
    }
}
