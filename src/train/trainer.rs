//! The way through: a plan and a corpus in, a checkpoint and its report out.

use std::path::PathBuf;

use rayon::prelude::*;
use serde_json::Value;

use super::augment::Augmentation;
use super::batches::{Batches, packs, thinned};
use super::documents::{Document, Documents, Loss, Writer, pack};
use super::export::{self, Companions};
use super::kernels::add;
use super::memory::check_memory;
use super::network::Network;
use super::optimizer::Weighted;
use super::recipe::{Recipe, Schedule, Shape};
use super::report::{CurvePoint, SCHEMA, TrainReport, Validation};
use super::state::{self, Past, TrainingState};
use crate::corpus::Conformers;
use crate::error::{Error, Parameter, Result};
use crate::job::{Job, Provenance, Unit};
use crate::model::Config;
use crate::text::Dialect;
use crate::tokenizer::{Named, Tokenizer};

/// Tokens of documents that a thread works on at a time: their activations stay in a processor's cache.
const PACK_TOKENS: usize = 1024;
/// Updates between two points of the loss curve.
const POINT_STEPS: u64 = 10;
/// Validation conformers on the way; the end has them all.
const QUICK_VALIDATION: usize = 64;

/// What to train.
pub struct TrainPlan {
    /// The decoder.
    pub shape: Shape,
    /// The updates.
    pub schedule: Schedule,
    /// What counts how much.
    pub loss: Loss,
    /// How conformers are changed before each pass.
    pub augmentation: Augmentation,
    /// How coordinates are written.
    pub dialect: Dialect,
    /// Of initial weights and of the order of documents.
    pub seed: u64,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// Its JSON.
    pub tokenizer_json: Vec<u8>,
    /// The tokenizer_config.json beside it.
    pub tokenizer_config: Option<Value>,
    /// The folder of the checkpoint.
    pub output: PathBuf,
    /// Whether to go on from the state in that folder.
    pub resume: bool,
    /// Updates between two saves.
    pub save_steps: u64,
}

/// Trains, validates, and writes a checkpoint at every save and at the end. A cancelled job saves its state first.
///
/// # Errors
/// If the plan is not sound, the corpus holds nothing to learn from, the state to resume is not of this plan, the loss
/// is no longer a number, the output cannot be written, or the job was cancelled.
pub fn train(plan: &TrainPlan, corpus: &dyn Conformers, job: &Job) -> Result<TrainReport> {
    plan.schedule.check()?;
    let end = plan.tokenizer.end_of_text(plan.tokenizer_config.as_ref())?;
    let begin = plan.tokenizer.beginning_of_text(plan.tokenizer_config.as_ref());
    let vocabulary = plan.tokenizer.vocabulary().into_values().max().map_or(0, |id| id as usize + 1);
    let config = plan.shape.config(vocabulary, begin.as_ref(), &end)?;
    let context = plan.shape.context;
    let keep = !plan.augmentation.is_none();
    let writer = Writer { tokenizer: &plan.tokenizer, end: &end, dialect: plan.dialect, context, keep };
    check_memory(&config, (plan.schedule.batch_tokens, PACK_TOKENS), 0)?;
    let documents = writer.documents(corpus, job)?;
    check_memory(&config, (plan.schedule.batch_tokens, PACK_TOKENS), documents.longest())?;
    std::fs::create_dir_all(&plan.output).map_err(|e| Error::io(&plan.output, e))?;
    let mut inputs = documents.summary.inputs.clone();
    inputs.push(plan.tokenizer.source.clone());
    let recipe = Recipe {
        shape: plan.shape,
        schedule: plan.schedule,
        loss: plan.loss,
        augmentation: plan.augmentation,
        dialect: plan.dialect,
        seed: plan.seed,
        tokenizer: plan.tokenizer.name.clone(),
        inputs,
    };
    let network = Network::new(&config, documents.longest());
    Run { plan, config, recipe, network, documents, end, begin, job }.all()
}

/// One training.
struct Run<'r> {
    plan: &'r TrainPlan,
    config: Config,
    recipe: Recipe,
    network: Network,
    documents: Documents,
    end: Named,
    begin: Option<Named>,
    job: &'r Job,
}

/// What an update sees.
enum Batch {
    /// Documents with a part of their coordinates.
    Outlines(Vec<Document>),
    /// Documents of a pass, of which so many were drawn before.
    Whole { first: u64, batch: Vec<usize> },
}

impl Run<'_> {
    fn all(&self) -> Result<TrainReport> {
        let (plan, layout) = (self.plan, &self.network.layout);
        let mut state = if plan.resume {
            TrainingState::load(&plan.output, &self.recipe, layout.size())?
        } else {
            TrainingState { weighted: Weighted::new(layout.initial(plan.seed)), past: Past::default() }
        };
        let outcome = self.steps(&mut state).and_then(|()| self.finish(&state));
        if matches!(outcome, Err(Error::Interrupted)) {
            state.save(&plan.output, &self.recipe)?;
            let (done, steps) = (state.weighted.step, plan.schedule.steps);
            let kept =
                format!("the state after {done} of {steps} steps was kept; go on with {}", Parameter::Resume);
            return Err(Error::Stopped { kept });
        }
        outcome
    }

    /// The steps that are left.
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
        // A job that was cancelled in the middle of a save did not get that far.
        let mut outcome = self.save_if_due(state);
        for (step, batch) in (0..steps).zip(first.map(Batch::Outlines).chain(then)) {
            outcome = outcome.and_then(|()| self.job.check());
            if outcome.is_err() {
                break;
            }
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

    /// The documents of a batch, augmented.
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
                        plan.augmentation.apply(&documents.conformers[n], plan.dialect, plan.seed, draw);
                    Document::new(&conformer, &plan.tokenizer, end, plan.dialect)
                })
                .collect(),
        }
    }

    /// The validation and the save of a step that has one, unless they were made.
    fn save_if_due(&self, state: &mut TrainingState) -> Result<()> {
        let step = state.weighted.step;
        let is_made = state.past.validation.last().is_some_and(|last| last.step >= step);
        if step == 0
            || step >= self.plan.schedule.steps
            || !step.is_multiple_of(self.plan.save_steps)
            || is_made
        {
            return Ok(());
        }
        let validation = self.validate(&state.weighted.weights, QUICK_VALIDATION, step)?;
        state.past.validation.push(validation);
        self.save(state)
    }

    /// One update by a batch of documents.
    fn step(&self, state: &mut TrainingState, batch: &[Document]) -> Result<()> {
        let weights = self.network.weights(&state.weighted.weights).map_err(candle)?;
        let parts = packs(batch, PACK_TOKENS).into_par_iter().map(|part| {
            self.job.check()?;
            let pack = pack(part, self.plan.loss);
            let weight: f64 = pack.targets.iter().map(|target| f64::from(target.weight)).sum();
            let (loss, gradient) = self.network.gradient(&weights, &pack).map_err(candle)?;
            Ok((loss, weight, gradient))
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        drop(weights);
        let loss: f64 = parts.iter().map(|(loss, ..)| loss).sum();
        let weight: f64 = parts.iter().map(|(_, weight, _)| weight).sum();
        if !loss.is_finite() {
            let problem = format!("the loss is no number after {} steps", state.weighted.step);
            return Err(Error::input(
                "training",
                problem,
                format!("give a lower {}", Parameter::LearningRate),
            ));
        }
        let gradient = sum(parts.into_iter().map(|(.., gradient)| gradient).collect());
        let (layout, schedule) = (&self.network.layout, &self.plan.schedule);
        let gradient_norm = state.weighted.update(&gradient, weight, layout, schedule).map_err(candle)?;
        let (past, step) = (&mut state.past, state.weighted.step);
        past.tokens += batch.iter().map(|document| document.tokens.len() as u64).sum::<u64>();
        past.pending = [past.pending[0] + loss, past.pending[1] + weight];
        if step.is_multiple_of(POINT_STEPS) || step == schedule.steps {
            let [loss, weight] = std::mem::take(&mut past.pending);
            let learning_rate = schedule.rate(step - 1);
            past.curve.push(CurvePoint {
                step,
                tokens: past.tokens,
                loss: loss / weight,
                gradient_norm,
                learning_rate,
            });
        }
        Ok(())
    }

    /// How well the first `most` validation documents are predicted.
    fn validate(&self, weights: &[f32], most: usize, step: u64) -> Result<Validation> {
        let documents = &self.documents.validation[..self.documents.validation.len().min(most)];
        let weights = self.network.weights(weights).map_err(candle)?;
        let tallies = documents.par_iter().map(|document| {
            self.job.check()?;
            let pack = pack([document], Loss { prompt: 0.0, copy: 1.0, fine: 1.0 });
            let predictions = self.network.predict(&weights, &pack).map_err(candle)?;
            let answer = predictions.iter().zip(document.prompt.max(1)..);
            let mut tally = Tally::default();
            for (prediction, at) in answer {
                tally.add(f64::from(prediction.nats), prediction.right, document.is_copy(at));
            }
            Ok(tally)
        });
        Ok(Tally::report(&tallies.collect::<Result<Vec<_>>>()?, step))
    }

    fn report(&self, past: &Past, stored: Option<Validation>) -> TrainReport {
        TrainReport {
            schema: SCHEMA,
            provenance: Provenance::of(self.recipe.inputs.clone()),
            finished: stored.is_some(),
            recipe: self.recipe.clone(),
            eos_token: self.end.text.clone(),
            parameters: self.network.layout.size() as u64,
            corpus: self.documents.sizes,
            stored,
            validation: past.validation.clone(),
            curve: past.curve.clone(),
        }
    }

    fn write(&self, weights: &[f32], report: &TrainReport) -> Result<()> {
        let companions = Companions {
            config: &self.config,
            tokenizer_json: &self.plan.tokenizer_json,
            tokenizer_config: self.plan.tokenizer_config.as_ref(),
            end: &self.end,
            begin: self.begin.as_ref(),
        };
        export::write(&self.plan.output, weights, &self.network.layout, &companions, report)
    }

    /// The state to go on from, and the checkpoint so far.
    fn save(&self, state: &TrainingState) -> Result<()> {
        state.save(&self.plan.output, &self.recipe)?;
        self.write(&state.weighted.weights, &self.report(&state.past, None))
    }

    /// The finished checkpoint; the state is of no more use.
    fn finish(&self, state: &TrainingState) -> Result<TrainReport> {
        let weights = export::stored(&state.weighted.weights);
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
    /// The most tokens of a document.
    fn longest(&self) -> usize {
        self.train
            .iter()
            .chain(&self.validation)
            .map(|document: &Document| document.tokens.len())
            .max()
            .unwrap_or(0)
    }
}

/// Sums gradients, always in their order.
fn sum(gradients: Vec<Vec<f32>>) -> Vec<f32> {
    const CHUNK: usize = 1 << 14;
    let mut gradients = gradients.into_iter();
    let mut sum = gradients.next().unwrap_or_default();
    let others: Vec<Vec<f32>> = gradients.collect();
    sum.par_chunks_mut(CHUNK).enumerate().for_each(|(n, sum)| {
        for gradient in &others {
            add(sum, &gradient[n * CHUNK..][..sum.len()]);
        }
    });
    sum
}

/// A refusal of candle: shapes that cannot be.
fn candle(error: candle_core::Error) -> Error {
    Error::internal("training", error)
}

/// Sums over the answer of one document.
#[derive(Default)]
struct Tally {
    nats: f64,
    /// By FREE and COPY: tokens, and those predicted rightly.
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
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
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
