//! Loads models, and generates the texts that are not stored yet.

use serde::Serialize;

use super::checkpoint::Checkpoint;
use super::encoding::settle;
use super::kept::TextStore;
use super::placeholders::{NamedPlaceholder, placeholders};
use super::plan::{GeneratePlan, Generations, ModelChoice};
use super::run::{RunProcessor, generate};
use crate::generate::Span;
use crate::parameter;
use drift_core::checkpoint::folder_name;
use drift_core::constraint::ProcessorKind;
use drift_core::geometry::GeometryRules;
use drift_core::{Error, Job, Result};
use drift_data::corpus::{EmbeddedCorpus, Part, SkippedRecord};
use drift_data::generation::Unseen;
use drift_data::prompts::Molecules;

/// A loaded model, and how far its generation came.
pub(crate) struct LoadedModel {
    /// The index of the model in the plan.
    pub index: usize,
    /// The model.
    pub checkpoint: Checkpoint,
    /// Its placeholders.
    pub placeholders: Vec<NamedPlaceholder>,
    /// The phases of the steps of each run that was started, if requested.
    pub spans: Vec<Vec<Span>>,
    /// Whether the job was cancelled.
    pub interrupted: bool,
}

impl LoadedModel {
    /// Loads a model of the plan.
    ///
    /// # Errors
    /// If its files are missing, damaged or inconsistent, are not those that stored texts were written with, or do not determine how
    /// it writes numbers; or if a placeholder does not suit it.
    pub(crate) fn load(
        plan: &GeneratePlan,
        index: usize,
        molecules: &Molecules,
        kept: &mut TextStore,
        job: &Job,
    ) -> Result<Self> {
        // Shards are merged in the encoding in which their texts were written; it is not determined again.
        let known = kept.model(index).filter(|_| kept.is_over()).cloned();
        let mut checkpoint = Checkpoint::load(&plan.models[index], plan, known.as_ref(), job)?;
        checkpoint.spelling = checkpoint.spelling.or(molecules.spelling);
        match &known {
            Some(known) => {
                if checkpoint.tokenizer.source != known.tokenizer {
                    let problem = "is not the tokenizer that texts were written with";
                    return Err(Error::input(&checkpoint.tokenizer.source.name, problem, "give that one"));
                }
                if checkpoint.settings != known.settings {
                    let problem = "has other settings than the model that texts were written with";
                    return Err(Error::input(format!("model {}", checkpoint.name), problem, "give that one"));
                }
                (checkpoint.encoding, checkpoint.encoding_from) = (known.encoding, known.encoding_from);
            }
            None => {
                settle(plan, &mut checkpoint, molecules, job)?;
                kept.keep_model(index, checkpoint.kept())?;
            }
        }
        let placeholders = placeholders(plan, &checkpoint, job)?;
        Ok(LoadedModel { index, checkpoint, placeholders, spans: Vec::new(), interrupted: false })
    }

    /// Generates the texts of all runs that are not stored yet, unless the job was cancelled.
    ///
    /// # Errors
    /// If a processor cannot be built for the tokenizer, the device fails, or the texts cannot be stored.
    pub(crate) fn generate(
        &mut self,
        plan: &GeneratePlan,
        molecules: &Molecules,
        kept: &mut TextStore,
        job: &Job,
    ) -> Result<()> {
        for (run, processor) in processors(plan, &self.placeholders).into_iter().enumerate() {
            if !self.interrupted {
                let of = (&mut *kept, (self.index, run));
                let (spans, interrupted) =
                    generate(plan, &mut self.checkpoint, &molecules.molecules, processor, of, job)?;
                self.spans.push(spans);
                self.interrupted = interrupted;
            }
        }
        Ok(())
    }

    /// Returns the runs that were started, in order. If the job was cancelled, the last ones were not.
    pub(crate) fn started<'l>(&'l self, plan: &GeneratePlan) -> Vec<RunProcessor<'l>> {
        processors(plan, &self.placeholders).into_iter().take(self.spans.len()).collect()
    }
}

/// Returns the runs of a model, in order: each logit processor, combined with each placeholder if it takes one.
pub(crate) fn processors<'p>(
    plan: &GeneratePlan,
    placeholders: &'p [NamedPlaceholder],
) -> Vec<RunProcessor<'p>> {
    let mut all = Vec::new();
    for kind in plan.processors.iter().copied() {
        if kind.takes_placeholder() {
            all.extend(placeholders.iter().map(|named| RunProcessor { kind, placeholder: Some(named) }));
        } else {
            all.push(RunProcessor { kind, placeholder: None });
        }
    }
    all
}

/// The progress of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ShardDone {
    /// The number of finished texts, over all logit processors of all models.
    pub texts: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

impl ShardDone {
    /// Runs a shard of `models` models. `each` does the work of a model and returns whether it was interrupted.
    pub(crate) fn of_models(
        models: usize,
        kept: &mut TextStore,
        each: &mut dyn FnMut(usize, &mut TextStore) -> Result<bool>,
    ) -> Result<Self> {
        kept.environment();
        let mut interrupted = false;
        for model in 0..models {
            if !interrupted {
                interrupted = each(model, kept)?;
            }
        }
        if !interrupted {
            kept.done()?;
        }
        Ok(ShardDone { texts: kept.texts(), interrupted })
    }
}

/// Refuses plans that cannot work before anything is loaded.
///
/// # Errors
/// If the plan is refused.
pub(crate) fn check_generation(plan: &GeneratePlan, molecules: &Molecules) -> Result<()> {
    distinct_names(&plan.models)?;
    plan.geometry.strength.check()?;
    let counts_none = molecules.molecules.iter().all(|molecule| molecule.conformer_count() == 0);
    if matches!(plan.generations, Generations::PerReference(_)) && counts_none {
        let problem = "texts are to follow the reference conformers of each molecule, and there are none";
        let remedy = format!("{}, or a number", give_references());
        return Err(Error::parameter(parameter::GENERATIONS, problem, remedy));
    }
    Ok(())
}

/// Leaves out the molecules that `geometry` cannot follow, if the plan has this processor: in all rows, so that rows stay comparable.
///
/// # Errors
/// If no molecule is left, or the geometry cannot be used at all.
pub fn with_geometry(plan: &GeneratePlan, mut molecules: Molecules) -> Result<Molecules> {
    if !plan.processors.contains(&ProcessorKind::Geometry) {
        return Ok(molecules);
    }
    let strength = plan.geometry.strength;
    strength.check()?;
    molecules.leave_out(|molecule| {
        let rules = GeometryRules::from_smiles(&molecule.smiles, strength);
        rules.err().map(|why| format!("has no known geometry: {}", why.reason))
    });
    match (molecules.molecules.is_empty(), molecules.skipped_records.last()) {
        (true, Some(SkippedRecord { record, reason, .. })) => {
            let remedy = "give molecules that RDKit reads, or the logit processor automaton";
            Err(Error::input(record, reason, remedy))
        }
        _ => Ok(molecules),
    }
}

/// Returns how to give references, as part of a remedy.
pub(crate) fn give_references() -> String {
    format!("give them with {}, or {}", parameter::REFERENCES, parameter::CORPUS)
}

/// Returns whether the model is known not to have been trained on these molecules.
pub(crate) fn unseen(checkpoint: &Checkpoint, molecules: &Molecules) -> Unseen {
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
