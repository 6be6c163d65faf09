//! Generates texts without judging them: the header and the lines of a file of texts.

use rayon::prelude::*;

use super::checkpoint::Checkpoint;
use super::generation::{LoadedModel, ShardDone, check_generation, inputs, unseen};
use super::kept::Kept;
use super::molecules::Molecules;
use super::plan::GeneratePlan;
use super::protocol::generation_protocol;
use super::run::{Run, finished_run};
use super::run_cost::{WrittenSums, generation_run};
use super::self_check_note::self_check_note;
use super::text_seconds::TextSeconds;
use super::written::WrittenText;
use crate::generate::{GeneratedText, Span, Verdict};
use drift_core::encoding::Encoding;
use drift_core::error::Result;
use drift_core::job::{Job, Provenance};
use drift_data::audit::{RowLabel, TextCost, TextLine};
use drift_data::generation::{GenerationRun, TEXTS_SCHEMA, TextsHeader};

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
    kept: &mut Kept,
    job: &Job,
) -> Result<GeneratedTexts> {
    check_generation(plan, molecules, kept)?;
    let mut texts = GeneratedTexts {
        header: TextsHeader {
            schema: TEXTS_SCHEMA.to_owned(),
            provenance: Provenance::from_inputs(inputs(plan, molecules)),
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
    kept: &mut Kept,
    job: &Job,
) -> Result<ShardDone> {
    check_generation(plan, molecules, kept)?;
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
        kept: &mut Kept,
    ) -> Result<()> {
        loaded.checkpoint.measure();
        let checkpoint = &loaded.checkpoint;
        self.header.interrupted = loaded.interrupted;
        self.header.provenance.inputs.extend_from_slice(&checkpoint.inputs);
        self.header.protocol.synthetic = checkpoint.synthetic;
        let unseen = unseen(checkpoint, molecules);
        let first = self.header.runs.len();
        for (run, processor) in loaded.started(plan).into_iter().enumerate() {
            let run = finished_run(plan, checkpoint, processor, kept.run((loaded.index, run)));
            let lines = Lines { plan, checkpoint, molecules, run: &run };
            let (lines, written) = lines.all()?;
            self.lines.extend(lines);
            self.header.runs.push(generation_run(plan, checkpoint, unseen, &run, written));
        }
        let runs = &self.header.runs[first..];
        self.header.notes.extend(runs.iter().filter_map(run_note));
        // If the self-check of a run already reports the problem, it is not reported twice.
        let is_told =
            runs.iter().any(|run| run.self_check.as_ref().is_some_and(|c| c.verdict != Verdict::Passed));
        self.header.notes.extend(checkpoint.note().filter(|_| !is_told));
        let named = runs.iter().zip(loaded.spans);
        let named = named.map(|(run, spans)| (format!("{} {}", run.model, run_label(run)), spans));
        self.spans.extend(named);
        Ok(())
    }
}

/// The logit processor with its placeholder.
fn run_label(run: &GenerationRun) -> String {
    RowLabel::of_run(run).processor()
}

fn run_note(run: &GenerationRun) -> Option<String> {
    self_check_note(&run.model, &run_label(run), run.self_check.as_ref()?)
}

/// The texts of a run, to be written as lines.
struct Lines<'l> {
    plan: &'l GeneratePlan,
    checkpoint: &'l Checkpoint,
    molecules: &'l Molecules,
    run: &'l Run,
}

impl Lines<'_> {
    /// The lines of all texts, and the sums over them.
    fn all(&self) -> Result<(Vec<TextLine>, WrittenSums)> {
        let texts = self.run.generated.samples.par_iter().map(|sample| self.line(sample));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let mut sums = WrittenSums::default();
        for (line, wasted_tokens) in &texts {
            sums.characters += line.text.chars().count() as u64;
            sums.wasted_tokens += wasted_tokens;
        }
        Ok((texts.into_iter().map(|(line, _)| line).collect(), sums))
    }

    /// The line of a text, and the number of its wasted tokens.
    fn line(&self, sample: &GeneratedText) -> Result<(TextLine, u64)> {
        let Lines { plan, checkpoint, molecules, run } = self;
        let molecule = &molecules.molecules[sample.prompt];
        let written = WrittenText::new(checkpoint, plan.form, sample)?;
        let wasted_tokens = written.wasted_tokens(checkpoint, sample);
        let line = TextLine {
            smiles: molecule.smiles.clone(),
            geom_smiles: molecule.pool.as_ref().map(|pool| pool.smiles.clone()),
            generation: sample.generation,
            lp: run.processor,
            placeholder: run.placeholder.clone(),
            model: checkpoint.name.clone(),
            encoding: named_encoding(checkpoint),
            text: written.text,
            cost: Some(self.cost(sample)),
        };
        Ok((line, wasted_tokens))
    }

    fn cost(&self, sample: &GeneratedText) -> TextCost {
        let conformers = self.plan.form.conformers.max(1);
        let seconds = self.run.text_seconds.get(&(sample.prompt, sample.generation / conformers));
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
            dead_ends: sample.dead_ends.map(|ends| ends.dead_ends),
            restarts: sample.dead_ends.map(|ends| ends.restarts),
        }
    }
}

fn sum(logs: Option<&[f32]>) -> Option<f64> {
    logs.map(|logs| logs.iter().map(|log| f64::from(*log)).sum())
}

/// How the texts of a model are written, unless in the decimals that a line without it has.
pub(super) fn named_encoding(checkpoint: &Checkpoint) -> Option<Encoding> {
    Some(checkpoint.encoding).filter(|encoding| !Encoding::ALL.contains(encoding))
}
