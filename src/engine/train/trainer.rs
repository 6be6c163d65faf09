//! The whole training: from a plan and a corpus to a checkpoint and its report.

use std::path::PathBuf;

use rayon::prelude::*;
use serde_json::Value;

use super::augment::Augmentation;
use super::batches::{Batches, thinned};
use super::documents::{Document, Documents, Loss, Writer};
use super::export::{self, Companions};
use super::gradients::{BatchLoss, Gradients, PACK_TOKENS, Trainable, candle};
use super::memory::check_memory;
use super::new_rows::NewRows;
use super::optimizer::FlatWeights;
use super::parameters::ParameterLayout;
use super::recipe::{Recipe, Schedule, Shape};
use super::report::{CurvePoint, SCHEMA, TrainReport, Validation};
use super::start::Start;
use super::state::{self, Origin, TrainingHistory, TrainingState};
use crate::model::Config;
use crate::parameter;
use drift_core::job::{Provenance, Unit};
use drift_core::tokenizer::NamedToken;
use drift_core::{Encoding, Error, Job, Result, Tokenizer};
use drift_data::corpus::Conformers;

/// The number of updates between two points of the loss curve.
const POINT_STEPS: u64 = 10;
/// The number of validation conformers during training; at the end all are used.
const QUICK_VALIDATION: usize = 64;

/// The plan of a training.
pub struct TrainPlan {
    /// The start: a shape with random weights, or a checkpoint.
    pub start: Start,
    /// The implementation that computes gradients.
    pub gradients: Gradients,
    /// The schedule of the updates.
    pub schedule: Schedule,
    /// The weights of tokens in the loss.
    pub loss: Loss,
    /// The random changes of conformers in each pass.
    pub augmentation: Augmentation,
    /// The encoding of coordinates.
    pub encoding: Encoding,
    /// The seed of the initial weights and of the order of documents.
    pub seed: u64,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The JSON of the tokenizer.
    pub tokenizer_json: Vec<u8>,
    /// The `tokenizer_config.json` beside it.
    pub tokenizer_config: Option<Value>,
    /// The output folder of the checkpoint.
    pub output: PathBuf,
    /// Whether to continue from the state in that folder.
    pub resume: bool,
    /// The number of updates between two saves.
    pub save_steps: u64,
}

/// Trains, validates, and writes a checkpoint at every save and at the end. A cancelled job saves its state first.
///
/// # Errors
/// If the plan is not valid, the corpus has nothing to learn from, the state to resume belongs to another plan, the loss becomes
/// NaN or infinite, the output cannot be written, or the job was cancelled.
pub fn train(plan: &TrainPlan, corpus: &dyn Conformers, job: &Job) -> Result<TrainReport> {
    plan.schedule.check()?;
    let end = plan.tokenizer.end_of_text(plan.tokenizer_config.as_ref())?;
    let begin = plan.tokenizer.beginning_of_text(plan.tokenizer_config.as_ref());
    plan.start.check(&plan.tokenizer, plan.schedule.new_rows_steps)?;
    let (config, context) = plan.start.config(&plan.tokenizer, begin.as_ref(), &end)?;
    let keep = !plan.augmentation.is_none();
    let writer = Writer { tokenizer: &plan.tokenizer, end: &end, encoding: plan.encoding, context, keep };
    // Checked before the corpus is read, for everything that does not depend on it, and again below when the longest document is
    // known.
    check_memory(&config, (plan.schedule.batch_tokens, PACK_TOKENS), 0)?;
    let layout = ParameterLayout::new(&config);
    let (weights, init) = plan.start.weights(&layout, &plan.tokenizer, plan.seed)?;
    let documents = writer.documents(corpus, job)?;
    // Other signs and digits may take more tokens. A changed document that exceeds this length is replaced by the unchanged one.
    let longest = documents.longest();
    let longest = if keep { (2 * longest + 64).min(context) } else { longest };
    check_memory(&config, (plan.schedule.batch_tokens, PACK_TOKENS), longest)?;
    std::fs::create_dir_all(&plan.output).map_err(|e| Error::io(&plan.output, e))?;
    let mut inputs = documents.summary.inputs.clone();
    inputs.push(plan.tokenizer.source.clone());
    let recipe = Recipe {
        shape: Shape::from_config(&config, context),
        schedule: plan.schedule,
        loss: plan.loss,
        augmentation: plan.augmentation,
        encoding: plan.encoding,
        seed: plan.seed,
        init,
        tokenizer: plan.tokenizer.name.clone(),
        end_of_text: end.text.clone(),
        beginning_of_text: begin.as_ref().map(|token| token.text.clone()),
        inputs,
    };
    let network = Trainable::new(&plan.gradients, &config, longest)?;
    let new_rows = NewRows::new(&layout, &plan.start.new_tokens(&plan.tokenizer));
    let documents_sha256 = documents.sha256();
    Run { plan, config, recipe, network, new_rows, documents, documents_sha256, longest, end, begin, job }
        .all(weights)
}

/// A training in progress.
struct Run<'r> {
    plan: &'r TrainPlan,
    config: Config,
    recipe: Recipe,
    network: Trainable,
    new_rows: NewRows,
    documents: Documents,
    documents_sha256: String,
    /// The largest number of tokens of a document.
    longest: usize,
    end: NamedToken,
    begin: Option<NamedToken>,
    job: &'r Job,
}

/// The source of an update's documents.
enum Batch {
    /// Documents with a part of their coordinates.
    Outlines(Vec<Document>),
    /// Documents of a pass, and how many were drawn before.
    Whole { first: u64, batch: Vec<usize> },
}

impl Run<'_> {
    fn origin(&self) -> Origin<'_> {
        Origin { recipe: &self.recipe, documents: &self.documents_sha256 }
    }

    fn all(&self, weights: Vec<f32>) -> Result<TrainReport> {
        let plan = self.plan;
        let mut state = if plan.resume {
            TrainingState::load(&plan.output, self.origin(), weights.len())?
        } else {
            TrainingState { weighted: FlatWeights::new(weights), past: TrainingHistory::default() }
        };
        let outcome = self.steps(&mut state).and_then(|()| self.finish(&state));
        // Only an interruption saves the state; after any other error the last save remains.
        if matches!(outcome, Err(Error::Interrupted)) {
            state.save(&plan.output, self.origin())?;
            let (done, steps) = (state.weighted.step, plan.schedule.steps);
            let how = parameter::RESUME;
            let kept = format!("the state after {done} of {steps} steps was kept; continue with {how}");
            return Err(Error::Stopped { kept });
        }
        outcome
    }

    /// Makes the remaining steps.
    fn steps(&self, state: &mut TrainingState) -> Result<()> {
        let Schedule { steps, outline_steps, shortest_first, batch_tokens, .. } = self.plan.schedule;
        let (train, seed) = (&self.documents.train, self.plan.seed);
        let lengths = train.iter().map(|document| document.tokens.len()).collect();
        let first = thinned(train, batch_tokens, outline_steps, seed);
        let then = Batches::new(lengths, batch_tokens, seed, shortest_first).scan(0, |drawn, batch| {
            *drawn += batch.len() as u64;
            Some(Batch::Whole { first: *drawn - batch.len() as u64, batch })
        });
        let from = state.weighted.step;
        self.job.observer().begin("training", Some(steps), Unit::Items);
        self.job.observer().advance(from);
        // A job that was cancelled during a due validation or save did not complete it, so it is made now.
        let mut outcome = self.save_if_due(state);
        for (step, batch) in (0..steps).zip(first.map(Batch::Outlines).chain(then)) {
            outcome = outcome.and_then(|()| self.job.check());
            if outcome.is_err() {
                break;
            }
            // Earlier batches are drawn and skipped, so that the random streams are at the same place.
            if step >= from {
                outcome = self.written(batch).and_then(|batch| self.step(state, &batch)).and_then(|()| {
                    self.job.observer().advance(1);
                    self.save_if_due(state)
                });
            }
        }
        self.job.observer().end();
        outcome
    }

    /// Returns the documents of a batch, augmented.
    fn written(&self, batch: Batch) -> Result<Vec<Document>> {
        let Run { plan, documents, end, .. } = self;
        match batch {
            Batch::Outlines(batch) => Ok(batch),
            Batch::Whole { batch, .. } if plan.augmentation.is_none() => {
                Ok(batch.into_iter().map(|n| documents.train[n].clone()).collect())
            }
            Batch::Whole { first, batch } => (first..)
                .zip(batch)
                .collect::<Vec<_>>()
                .into_par_iter()
                .map(|(draw, n)| {
                    let conformer =
                        plan.augmentation.apply(&documents.conformers[n], plan.encoding, plan.seed, draw);
                    let document = Document::new(&conformer, &plan.tokenizer, end, plan.encoding)?;
                    let fits = document.tokens.len() <= self.longest;
                    Ok(if fits { document } else { documents.train[n].clone() })
                })
                .collect(),
        }
    }

    /// Validates and saves after a step for which this is due, unless it was done already.
    fn save_if_due(&self, state: &mut TrainingState) -> Result<()> {
        let step = state.weighted.step;
        let is_made = state.past.validation.last().is_some_and(|last| last.step >= step);
        let is_due = step > 0 && step.is_multiple_of(self.plan.save_steps);
        if !is_due || is_made || step >= self.plan.schedule.steps {
            return Ok(());
        }
        let validation = self.validate(&state.weighted.weights, QUICK_VALIDATION, step)?;
        state.past.validation.push(validation);
        self.save(state)
    }

    /// Makes one update with a batch of documents.
    fn step(&self, state: &mut TrainingState, batch: &[Document]) -> Result<()> {
        let BatchLoss { nats: loss, weight, gradient } =
            self.network.gradient(&state.weighted.weights, batch, self.plan.loss, self.job)?;
        if !loss.is_finite() {
            return Err(diverged("loss", state));
        }
        let (weighted, schedule) = (&mut state.weighted, &self.plan.schedule);
        let gradient_norm = if weighted.step < schedule.new_rows_steps {
            self.new_rows.update(weighted, &gradient, weight, schedule)
        } else {
            weighted.update(&gradient, weight, self.network.layout(), schedule)
        };
        let gradient_norm = gradient_norm.map_err(candle)?;
        // A finite loss may have a gradient that is not finite. The optimizer has not applied it, so the saved state is valid.
        if !gradient_norm.is_finite() {
            return Err(diverged("gradient", state));
        }
        let (past, step) = (&mut state.past, state.weighted.step);
        past.tokens += batch.iter().map(|document| document.tokens.len() as u64).sum::<u64>();
        past.pending = [past.pending[0] + loss, past.pending[1] + weight];
        if step.is_multiple_of(POINT_STEPS) || step == schedule.steps {
            let [loss, weight] = std::mem::take(&mut past.pending);
            // The number of the update that was just made, counted from 0.
            let learning_rate = schedule.rate(step - 1);
            past.curve.push(CurvePoint {
                step,
                tokens: past.tokens,
                // Updates without targets have no loss, and JSON cannot represent NaN.
                loss: if weight > 0.0 { loss / weight } else { 0.0 },
                gradient_norm,
                learning_rate,
            });
        }
        Ok(())
    }

    /// Measures how well the first `most` validation documents are predicted.
    fn validate(&self, weights: &[f32], most: usize, step: u64) -> Result<Validation> {
        let documents = &self.documents.validation[..self.documents.validation.len().min(most)];
        let answers = Loss::default();
        let predictions = self.network.predict(weights, documents, answers, self.job)?;
        let tallies = documents.iter().zip(predictions).map(|(document, predictions)| {
            let mut tally = Tally::default();
            for (prediction, at) in predictions.iter().zip(document.prompt.max(1)..) {
                tally.add(f64::from(prediction.nats), prediction.right, document.is_copy(at));
            }
            tally
        });
        Ok(Tally::report(&tallies.collect::<Vec<_>>(), step))
    }

    fn report(&self, past: &TrainingHistory, stored: Option<Validation>) -> TrainReport {
        TrainReport {
            schema: SCHEMA,
            provenance: Provenance::from_inputs(self.recipe.inputs.clone()),
            finished: stored.is_some(),
            recipe: self.recipe.clone(),
            eos_token: self.end.text.clone(),
            parameters: self.network.layout().size() as u64,
            corpus: self.documents.sizes,
            stored,
            validation: past.validation.clone(),
            curve: past.curve.clone(),
        }
    }

    fn write(&self, weights: &[f32], report: &TrainReport) -> Result<()> {
        let start = &self.plan.start;
        let config = start.written_config(&self.config, &self.end);
        let generation = start.generation_config(&self.end);
        let companions = Companions {
            float: start.float(),
            config: &config,
            generation: generation.as_ref(),
            tokenizer_json: &self.plan.tokenizer_json,
            tokenizer_config: self.plan.tokenizer_config.as_ref(),
            end: &self.end,
            begin: self.begin.as_ref(),
        };
        export::write(&self.plan.output, weights, self.network.layout(), &companions, report)
    }

    /// Saves the state for resuming, and the checkpoint so far.
    fn save(&self, state: &TrainingState) -> Result<()> {
        state.save(&self.plan.output, self.origin())?;
        self.write(&state.weighted.weights, &self.report(&state.past, None))
    }

    /// Writes the finished checkpoint and removes the state.
    fn finish(&self, state: &TrainingState) -> Result<TrainReport> {
        // Validated as stored, because rounding to the type of the checkpoint is part of it.
        let weights = export::stored(&state.weighted.weights, self.plan.start.float());
        let stored = self.validate(&weights, usize::MAX, state.weighted.step)?;
        let report = self.report(&state.past, Some(stored));
        self.write(&state.weighted.weights, &report)?;
        let file = self.plan.output.join(state::FILE);
        match std::fs::remove_file(&file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&file, e)),
            _ => Ok(report),
        }
    }
}

impl Documents {
    /// Returns the largest number of tokens of a document.
    fn longest(&self) -> usize {
        let all = self.train.iter().chain(&self.validation);
        all.map(|document| document.tokens.len()).max().unwrap_or(0)
    }
}

/// Sums over the answer of one document.
#[derive(Default)]
struct Tally {
    nats: f64,
    /// For FREE and COPY tokens: how many there are, and how many are predicted correctly.
    tokens: [u64; 2],
    right: [u64; 2],
}

impl Tally {
    fn add(&mut self, nats: f64, right: bool, copy: bool) {
        self.nats += nats;
        self.tokens[usize::from(copy)] += 1;
        self.right[usize::from(copy)] += u64::from(right);
    }

    fn report(tallies: &[Tally], step: u64) -> Validation {
        let nats: f64 = tallies.iter().map(|tally| tally.nats).sum();
        let count = |f: &dyn Fn(&Tally) -> u64| tallies.iter().map(f).sum::<u64>() as f64;
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let tokens = [0, 1].map(|class| count(&|tally| tally.tokens[class]));
        let right = [0, 1].map(|class| count(&|tally| tally.right[class]));
        let copied = count(&|tally| u64::from(tally.right[1] == tally.tokens[1]));
        let conformers = tallies.len() as f64;
        Validation {
            step,
            conformers: tallies.len() as u64,
            nats_per_token: share(nats, tokens[0] + tokens[1]),
            nats_per_conformer: share(nats, conformers),
            copy_accuracy: share(right[1], tokens[1]),
            free_accuracy: share(right[0], tokens[0]),
            copied: share(copied, conformers),
        }
    }
}

fn diverged(what: &str, state: &TrainingState) -> Error {
    let problem = format!("the {what} is not a number after {} steps", state.weighted.step);
    Error::input("training", problem, format!("give a lower {}", parameter::LEARNING_RATE))
}
