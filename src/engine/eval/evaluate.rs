//! Generates texts with each logit processor, and judges them.

use std::collections::BTreeMap;

use super::advice::{advice, self_checks, speed_advice};
use super::drift::{CopiedText, drift_of};
use super::energies::EnergyAnswers;
use super::likelihood::{MoleculeNats, likelihood, score};
use super::plan::EvalPlan;
use super::protocol::protocol;
use super::record::{EvalReport, Likelihood, PairedComparison, RunReport, SCHEMA};
use super::texts::SameTexts;
use crate::generate::{End, Span};
use crate::model::Synthetic;
use crate::parameter;
use crate::runs::TextStore;
use crate::runs::loaded::{LoadedModel, ShardDone, check_generation, give_references, processors, unseen};
use crate::runs::run::{Run, finished_run};
use crate::runs::run_cost::generation_run;
use drift_core::job::{InputHash, Provenance};
use drift_core::{Error, Job, Result};
use drift_data::audit::{
    AuditedTexts, DriftHistogram, EnergyReport, JudgedRows, MoleculeRecord, PromptNats, PromptReferences,
    RmsdMatrix, RowText, RowTexts, TextLine, VerdictLine, judge_rows,
};
use drift_data::generation::GenerationRun;
use drift_data::prompts::Molecules;

/// The result of an evaluation.
#[derive(Debug)]
pub struct Evaluation {
    /// The record.
    pub report: EvalReport,
    /// Every text, ordered by run, molecule and generation.
    pub texts: Vec<TextLine>,
    /// One entry for every molecule of every run, if the plan keeps them.
    pub molecules: Vec<MoleculeRecord>,
    /// The phases of each run, if requested.
    pub spans: Vec<(String, Vec<Span>)>,
    /// By model, the results for each text.
    pub by_text: Vec<AuditedTexts>,
}

impl Evaluation {
    /// Returns one line for each text, ordered by run, molecule and generation.
    pub fn verdicts(&self) -> Vec<VerdictLine> {
        let mut lines: Vec<VerdictLine> = Vec::new();
        for texts in &self.by_text {
            let first = lines.len();
            lines.extend(texts.lines().into_iter().enumerate().map(|(at, line)| VerdictLine {
                id: (first + at).to_string(),
                // No file holds these texts.
                file: None,
                record: None,
                duplicate_of: line.duplicate_of.map(|line| first + line),
                ..line
            }));
        }
        lines
    }

    /// Returns the distances of all pairs of a text and a reference, by molecule. Only of the first model.
    pub fn matrix(&self) -> RmsdMatrix<'_> {
        self.by_text.first().map(AuditedTexts::matrix).unwrap_or_default()
    }
}

/// Generates texts for all molecules with all logit processors of all models, and measures them. Texts in `kept` are not generated
/// again, and new texts are stored in it as soon as they are finished.
///
/// A cancelled job is not an error: the record then contains what was finished.
///
/// # Errors
/// If a model cannot be loaded, a processor cannot be built for its tokenizer, or the device fails.
pub fn evaluate(
    plan: &EvalPlan,
    molecules: &Molecules,
    kept: &mut TextStore,
    job: &Job,
) -> Result<Evaluation> {
    check(plan, molecules)?;
    let environment = kept.environment();
    let references = molecules.prompt_references()?;
    let judging = JudgingInput { plan, molecules, references: &references };
    let mut gathered = EvaluationResults { inputs: kept.inputs(), ..EvaluationResults::default() };
    for model in 0..plan.generate.models.len() {
        if !gathered.interrupted && !kept.lacks(model) {
            let loaded = generated(plan, model, molecules, kept, job)?;
            gathered.add(judging, loaded, kept, job)?;
        }
    }
    let energy = gathered.energy_report(judging, job)?;
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
        command: None,
        environment,
        protocol: protocol(plan, molecules, gathered.synthetic),
        interrupted: gathered.interrupted || kept.is_partial,
        runs,
        comparisons: gathered.comparisons,
        reference_chemistry: references.chemistry(),
        likelihoods: gathered.likelihoods,
        advice,
        same_texts: gathered.same_texts,
        energy,
    };
    let EvaluationResults { texts, records: molecules, spans, by_text, .. } = gathered;
    Ok(Evaluation { report, texts, molecules, spans, by_text })
}

/// Runs a shard: generates and scores for its molecules, and stores the results. They are judged when shards are merged.
///
/// # Errors
/// The errors of [`evaluate`].
pub fn evaluate_shard(
    plan: &EvalPlan,
    molecules: &Molecules,
    kept: &mut TextStore,
    job: &Job,
) -> Result<ShardDone> {
    check(plan, molecules)?;
    ShardDone::of_models(plan.generate.models.len(), kept, &mut |model, kept| {
        Ok(generated(plan, model, molecules, kept, job)?.interrupted)
    })
}

/// Refuses plans that cannot work before anything is loaded.
fn check(plan: &EvalPlan, molecules: &Molecules) -> Result<()> {
    let has_none = molecules.molecules.iter().all(|molecule| molecule.conformers.is_empty());
    if plan.likelihood && has_none {
        let problem = "there are no reference conformers to score";
        return Err(Error::parameter(parameter::LIKELIHOOD, problem, give_references()));
    }
    if !plan.ensembles.hits.is_empty() && has_none {
        let problem = "there are no reference conformers to be close to";
        return Err(Error::parameter(parameter::HITS, problem, give_references()));
    }
    check_generation(&plan.generate, molecules)
}

/// Loads a model, then scores and generates what is not stored yet.
fn generated(
    plan: &EvalPlan,
    model: usize,
    molecules: &Molecules,
    kept: &mut TextStore,
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

/// What texts are judged by.
#[derive(Clone, Copy)]
struct JudgingInput<'e> {
    plan: &'e EvalPlan,
    molecules: &'e Molecules,
    references: &'e PromptReferences,
}

/// The results of the models so far.
#[derive(Default)]
struct EvaluationResults {
    runs: Vec<RunReport>,
    comparisons: Vec<PairedComparison>,
    likelihoods: Vec<Likelihood>,
    /// The nats of the first model, by molecule.
    first_nats: Option<MoleculeNats>,
    texts: Vec<TextLine>,
    records: Vec<MoleculeRecord>,
    by_text: Vec<AuditedTexts>,
    spans: Vec<(String, Vec<Span>)>,
    inputs: Vec<InputHash>,
    interrupted: bool,
    synthetic: Option<Synthetic>,
    same_texts: Option<SameTexts>,
    energies: EnergyAnswers,
    /// Notes on computations that differed from what was requested.
    notes: Vec<String>,
}

impl EvaluationResults {
    /// Judges all runs of a model and adds their results.
    fn add(
        &mut self,
        judging: JudgingInput<'_>,
        mut loaded: LoadedModel,
        kept: &mut TextStore,
        job: &Job,
    ) -> Result<()> {
        let JudgingInput { plan, molecules, .. } = judging;
        loaded.checkpoint.measure();
        self.interrupted = loaded.interrupted;
        self.inputs.append(&mut loaded.checkpoint.inputs);
        self.synthetic = loaded.checkpoint.synthetic;
        let nats = match plan.likelihood {
            true => self.add_likelihood(judging, &loaded, kept)?,
            false => BTreeMap::new(),
        };
        let mut runs = Vec::new();
        for (run, processor) in loaded.started(&plan.generate).into_iter().enumerate() {
            let kept = kept.run((loaded.index, run));
            runs.push(finished_run(&plan.generate, &loaded.checkpoint, processor, kept)?);
        }
        // As the model wrote them: junk is removed for the judge alone.
        self.texts.extend(runs.iter().flat_map(|run| run.lines(&loaded.checkpoint, molecules)));
        if plan.strip_junk {
            let encoding = loaded.checkpoint.encoding;
            runs.iter_mut().for_each(|run| run.strip_junk(encoding));
        }
        let self_checks = runs.iter().filter_map(|run| run.generated.self_check.as_ref());
        self.notes.extend(loaded.checkpoint.note_beside(self_checks));
        if let Some(other) = &plan.same_as {
            let same = self.same_texts.get_or_insert_with(|| SameTexts::beside(other));
            for (processor, run) in processors(&plan.generate, &loaded.placeholders).into_iter().zip(&runs) {
                let checkpoint = &mut loaded.checkpoint;
                same.add((&plan.generate, other), checkpoint, &molecules.molecules, (processor, run))?;
            }
        }
        self.add_judged(judging, &loaded, &runs, &nats, job)?;
        let labels = runs.iter().map(|run| run.row_label(&loaded.checkpoint).full_name());
        self.spans.extend(labels.zip(loaded.spans));
        Ok(())
    }

    /// Adds the likelihood of the references under a model. Returns it by the SMILES of the prompt.
    fn add_likelihood(
        &mut self,
        JudgingInput { plan, molecules, .. }: JudgingInput<'_>,
        loaded: &LoadedModel,
        kept: &mut TextStore,
    ) -> Result<BTreeMap<String, PromptNats>> {
        let scored = std::mem::take(kept.nats(loaded.index));
        let (checkpoint, first) = (&loaded.checkpoint, self.first_nats.as_ref());
        let (scored, by_molecule) =
            likelihood(checkpoint, &molecules.molecules, &scored, first, plan.generate.seed)?;
        self.likelihoods.extend(scored);
        let known = molecules.molecules.iter().zip(&by_molecule).filter_map(|(molecule, mean)| {
            let nats = PromptNats { mean: (*mean)?, conformers: molecule.conformers.len() };
            Some((molecule.smiles.clone(), nats))
        });
        let by_smiles = known.collect();
        self.first_nats.get_or_insert(by_molecule);
        Ok(by_smiles)
    }

    /// Judges the texts of a model's runs, and adds the results.
    fn add_judged(
        &mut self,
        JudgingInput { plan, molecules, references }: JudgingInput<'_>,
        loaded: &LoadedModel,
        runs: &[Run],
        nats: &BTreeMap<String, PromptNats>,
        job: &Job,
    ) -> Result<()> {
        let (checkpoint, unseen) = (&loaded.checkpoint, unseen(&loaded.checkpoint, molecules));
        let generation: Vec<GenerationRun> =
            runs.iter().map(|run| generation_run(&plan.generate, checkpoint, unseen, run)).collect();
        let rows = runs.iter().zip(&generation).map(|(run, own)| row_texts(molecules, run, own.clone()));
        let encoding = checkpoint.encoding;
        let audit_plan = plan.audit_plan(encoding);
        let judged = judge_rows(&audit_plan, encoding, rows.collect(), references, plan.generate.seed)?;
        let processors = loaded.started(&plan.generate);
        for (row, own) in generation.into_iter().enumerate() {
            let mut drift = DriftHistogram::default();
            if let Some(named) = processors[row].placeholder {
                drift =
                    drift_of(checkpoint, &named.placeholder, &copied(molecules, &runs[row], &judged, row))?;
            }
            self.runs.push(RunReport::new(own, judged.runs[row].clone(), drift));
        }
        for texts in judged.energy_texts {
            if let Some(energies) = plan.energy.as_ref().filter(|_| !self.interrupted) {
                self.interrupted = self.energies.add(energies, &checkpoint.name, texts, job)?;
            }
        }
        if plan.by_molecule {
            self.records.extend(judged.texts.molecules(plan.molecule_measures(), nats));
        }
        self.comparisons.extend(judged.comparisons);
        if plan.by_text {
            self.by_text.push(judged.texts);
        }
        Ok(())
    }

    /// Returns the report on energies; `None` if the job was interrupted.
    fn energy_report(
        &mut self,
        JudgingInput { plan, references, .. }: JudgingInput<'_>,
        job: &Job,
    ) -> Result<Option<EnergyReport>> {
        let Some(energies) = plan.energy.as_ref().filter(|_| !self.interrupted) else { return Ok(None) };
        let report = self.energies.report(energies, references, job)?;
        self.interrupted = report.is_none();
        Ok(report)
    }
}

/// Returns the texts of a run, to be judged.
fn row_texts(molecules: &Molecules, run: &Run, generation: GenerationRun) -> RowTexts {
    let texts = run.generated.samples.iter().zip(&run.written).map(|(sample, written)| {
        let molecule = &molecules.molecules[sample.prompt];
        RowText {
            smiles: molecule.smiles.clone(),
            pool: molecule.pool.as_ref().map(|pool| pool.smiles.clone()),
            generation: sample.generation as u64,
            text: written.text.clone(),
            is_cut: sample.end != End::Eos,
            truncated: written.truncated.clone(),
        }
    });
    RowTexts { run: generation, texts: texts.collect() }
}

/// Returns the texts of a run that have the skeletons of their prompts.
fn copied<'t>(
    molecules: &'t Molecules,
    run: &'t Run,
    judged: &JudgedRows,
    row: usize,
) -> Vec<CopiedText<'t>> {
    let texts = run.generated.samples.iter().zip(&run.written).zip(judged.copied(row));
    let copied = texts.filter(|(_, is_copied)| *is_copied).map(|((sample, written), _)| CopiedText {
        text: &written.text,
        skeleton: &molecules.molecules[sample.prompt].skeleton,
    });
    copied.collect()
}
