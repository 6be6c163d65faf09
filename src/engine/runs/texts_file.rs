//! Generates texts without judging them: the header and the lines of a file of texts.

use super::kept::TextStore;
use super::loaded::{LoadedModel, ShardDone, check_generation, unseen};
use super::plan::GeneratePlan;
use super::protocol::generation_protocol;
use super::run::{Run, finished_run};
use super::run_cost::generation_run;
use super::self_check_note::self_check_note;
use super::text_seconds::TextSeconds;
use super::written::WrittenText;
use crate::generate::{GeneratedText, Span};
use drift_core::job::Provenance;
use drift_core::{Job, Result};
use drift_data::audit::{RowLabel, TextCost, TextLine};
use drift_data::generation::{GenerationRun, TEXTS_SCHEMA, TextsHeader};
use drift_data::prompts::Molecules;

/// The content of a file of texts.
#[derive(Debug)]
pub struct GeneratedTexts {
    /// The first line.
    pub header: TextsHeader,
    /// Every text, ordered by run, molecule and generation.
    pub lines: Vec<TextLine>,
    /// The phases of each run, if requested.
    pub spans: Vec<(String, Vec<Span>)>,
}

/// Generates texts for all molecules with all logit processors of all models. Texts in `kept` are not generated again, and new texts
/// are stored in it as soon as they are finished.
///
/// A cancelled job is not an error: the result then contains what was finished.
///
/// # Errors
/// If a model cannot be loaded, a processor cannot be built for its tokenizer, or the device fails.
pub fn generate_texts(
    plan: &GeneratePlan,
    molecules: &Molecules,
    kept: &mut TextStore,
    job: &Job,
) -> Result<GeneratedTexts> {
    check_generation(plan, molecules)?;
    let mut texts = GeneratedTexts {
        header: TextsHeader {
            schema: TEXTS_SCHEMA.to_owned(),
            provenance: Provenance::from_inputs(kept.inputs()),
            environment: kept.environment(),
            protocol: generation_protocol(plan, molecules, None),
            interrupted: false,
            runs: Vec::new(),
            notes: Vec::new(),
        },
        lines: Vec::new(),
        spans: Vec::new(),
    };
    for model in 0..plan.models.len() {
        if !texts.header.interrupted && !kept.lacks(model) {
            let mut loaded = LoadedModel::load(plan, model, molecules, kept, job)?;
            loaded.generate(plan, molecules, kept, job)?;
            texts.add(plan, loaded, molecules, kept)?;
        }
    }
    if !texts.header.interrupted {
        kept.done()?;
    }
    texts.header.interrupted |= kept.is_partial;
    Ok(texts)
}

/// Runs a shard: generates for its molecules, and stores the texts.
///
/// # Errors
/// The errors of [`generate_texts`].
pub fn generate_shard(
    plan: &GeneratePlan,
    molecules: &Molecules,
    kept: &mut TextStore,
    job: &Job,
) -> Result<ShardDone> {
    check_generation(plan, molecules)?;
    ShardDone::of_models(plan.models.len(), kept, &mut |model, kept| {
        let mut loaded = LoadedModel::load(plan, model, molecules, kept, job)?;
        loaded.generate(plan, molecules, kept, job)?;
        Ok(loaded.interrupted)
    })
}

impl GeneratedTexts {
    /// Adds the texts of a model.
    fn add(
        &mut self,
        plan: &GeneratePlan,
        mut loaded: LoadedModel,
        molecules: &Molecules,
        kept: &mut TextStore,
    ) -> Result<()> {
        loaded.checkpoint.measure();
        let checkpoint = &loaded.checkpoint;
        self.header.interrupted = loaded.interrupted;
        self.header.provenance.inputs.extend_from_slice(&checkpoint.inputs);
        self.header.protocol.synthetic = checkpoint.synthetic;
        let unseen = unseen(checkpoint, molecules);
        let first = self.header.runs.len();
        for (run, processor) in loaded.started(plan).into_iter().enumerate() {
            let run = finished_run(plan, checkpoint, processor, kept.run((loaded.index, run)))?;
            let texts = run.generated.samples.iter().zip(&run.written);
            let costs = texts.map(|(sample, written)| cost_of(plan, &run, sample, written));
            let lines = run.lines(checkpoint, molecules).zip(costs);
            self.lines.extend(lines.map(|(line, cost)| TextLine { cost: Some(cost), ..line }));
            self.header.runs.push(generation_run(plan, checkpoint, unseen, &run));
        }
        let runs = &self.header.runs[first..];
        self.header.notes.extend(runs.iter().filter_map(run_note));
        self.header
            .notes
            .extend(checkpoint.note_beside(runs.iter().filter_map(|run| run.self_check.as_ref())));
        let named = runs.iter().zip(loaded.spans);
        let named = named.map(|(run, spans)| (RowLabel::of_run(run).full_name(), spans));
        self.spans.extend(named);
        Ok(())
    }
}

fn run_note(run: &GenerationRun) -> Option<String> {
    self_check_note(&run.model, &RowLabel::of_run(run).processor(), run.self_check.as_ref()?)
}

/// Returns how a text ended, and what it cost.
fn cost_of(plan: &GeneratePlan, run: &Run, sample: &GeneratedText, written: &WrittenText) -> TextCost {
    let conformers = plan.form.conformers.max(1);
    let seconds = run.text_seconds.get(&(sample.prompt, sample.generation / conformers));
    // The conformers of a text finish with it.
    let seconds = seconds.map(|seconds| seconds.shared_by(conformers));
    let TextSeconds { wall, cpu } = seconds.unwrap_or(TextSeconds { wall: 0.0, cpu: None });
    TextCost {
        end: sample.end,
        tokens: sample.tokens.len() as u64,
        forced_tokens: sample.forced.iter().filter(|forced| **forced).count() as u64,
        log_probability: sum(sample.log_probabilities.as_deref()),
        log_allowed: sum(sample.log_allowed.as_deref()),
        seconds: wall,
        cpu_seconds: cpu,
        truncated_blocks: written.truncated.clone(),
        dead_ends: sample.dead_ends.map(|ends| ends.dead_ends),
        backtracks: sample.dead_ends.map(|ends| ends.backtracks),
    }
}

fn sum(logs: Option<&[f32]>) -> Option<f64> {
    logs.map(|logs| logs.iter().map(|log| f64::from(*log)).sum())
}
