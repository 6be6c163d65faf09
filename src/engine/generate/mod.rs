//! Batched generation under logit processors.
//!
//! An [`Engine`] takes [`Prompt`]s, one per molecule, each with its [`Constraint`](drift_core::constraint::Constraint) and number
//! of generations. It returns the [`GeneratedText`]s in the same order. With the same seed a text does not depend on the batch, the
//! order and the number of threads (on the CPU, in f32).

mod admit;
mod backtracking;
mod check_draws;
mod check_report;
mod check_steps;
mod clock;
mod compared;
mod cost;
mod counts;
mod decode;
mod device_steps;
mod evidence;
mod f32_reference;
mod groups;
mod head;
mod on_device;
mod particles;
mod row;
mod schedule;
mod score;
mod self_check;
mod sink;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use check_report::SelfChecking;
pub use clock::{BatchSeconds, CpuClock, Phase, Span, Timing};
pub use counts::WorkCounts;
pub use drift_core::sampling::Sampling;
pub use drift_data::audit::{DeadEnds, End};
pub use drift_data::generation::{NearTie, RecomputedChoice, SelfCheck, Traffic, Verdict};
pub use score::Text;
pub use sink::{NoSink, TextDelta, TextSink};

use self::on_device::Starter;
use crate::model::cuda::{self, Gpu};
use crate::model::{
    Config, Decoder, Device, KernelSteps, Room, check_fits, checked_product, checked_sum, free_memory,
};
use crate::parameter;
use drift_core::constraint::Constraint;
use drift_core::{Error, Job, Result};

/// The memory of a token of a text until the end of the run, in bytes: its id, its characters, its marks.
const TOKEN_BYTES: usize = 16;

/// The default of [`Options::backtrack`].
pub const BACKTRACK: u32 = 12;

/// The memory of a text without its tokens, in bytes.
const TEXT_BYTES: usize = 512;

/// A molecule for which texts are generated.
#[derive(Clone)]
pub struct Prompt {
    /// The number of the prompt in the whole evaluation, of which these prompts may be a part. Draws and results refer to it.
    pub number: usize,
    /// The tokens of the prompt; at least one.
    pub tokens: Vec<u32>,
    /// The number of texts.
    pub generations: usize,
    /// The sorted generations that are written already. If texts are resampled together, either all of them or none.
    pub done: Arc<[usize]>,
    /// The logit processor of the texts.
    pub constraint: Arc<dyn Constraint>,
    /// The largest number of tokens of a text, including its end; fewer if the context ends first.
    pub most_tokens: usize,
    /// A rough estimate of the tokens of a text; longer texts start first.
    pub expected_tokens: usize,
}

/// The settings of a generation.
#[derive(Debug, Clone)]
pub struct Options {
    /// The number of rows of a batch.
    pub batch: usize,
    /// The way in which tokens are drawn.
    pub sampling: Sampling,
    /// The seed of all draws.
    pub seed: u64,
    /// How the KV cache is allocated.
    pub room: Room,
    /// Whether to log the probability that the model gives to each token. This costs the whole LM head at each token.
    pub log_probabilities: bool,
    /// Sorted ids. If one of them is forced, [`GeneratedText::preferred`] contains the token that the model itself would have
    /// written. This costs the whole LM head there.
    pub watched: Arc<[u32]>,
    /// Whether the texts of a molecule are weighted and resampled while they are written; this also logs probabilities.
    pub resampling: Option<Resampling>,
    /// A text goes back where its geometry leaves no token, until it has written this many times the atoms of a conformer in vain.
    /// After that the atom is held to less.
    pub backtrack: u32,
    /// Whether to keep a [`Span`] for each phase of each step.
    pub trace: bool,
    /// The source of the CPU seconds of [`BatchSeconds`].
    pub cpu_clock: Option<CpuClock>,
    /// How a device is checked before it writes texts. The CPU is not checked.
    pub self_check: SelfChecking,
}

impl Options {
    /// Returns whether all logits are computed at each token.
    fn logs(&self) -> bool {
        self.log_probabilities || self.resampling.is_some()
    }
}

/// Sequential importance resampling of the texts of a molecule. With it, texts follow the model's distribution conditioned on legal
/// texts; masks alone do not sample from that distribution. Each text has the weight ∏ Z, where Z is the share of the distribution
/// that the mask allowed at each token ([`GeneratedText::log_allowed`]). N. Chopin and O. Papaspiliopoulos, An Introduction to
/// Sequential Monte Carlo (2020), chapters 9 and 10.
#[derive(Debug, Clone)]
pub struct Resampling {
    /// The largest number of texts that are drawn together. The texts of a molecule are split into as few groups of at most this
    /// size as possible, of sizes as even as possible.
    pub draws: usize,
    /// Sorted ids of tokens that end a block. There a text waits until the other texts of its group have ended as many blocks.
    pub block_ends: Arc<[u32]>,
}

/// The result of a group of texts that were resampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResampledGroup {
    /// The number of the prompt.
    pub prompt: usize,
    /// The first generation of the group.
    pub first: usize,
    /// The number of texts of the group.
    pub draws: usize,
    /// The effective sample size of the finished texts, (Σw)² / Σw², before the last resampling. After it, all texts have the same
    /// weight.
    pub effective: f64,
    /// The smallest effective sample size at the end of any block or of the texts.
    pub least_effective: f64,
    /// The number of resamplings before the last one.
    pub resamplings: usize,
    /// The number of initial texts from which the final texts descend.
    pub ancestors: usize,
    /// The natural logarithm of an unbiased estimate of the probability that the unmasked model writes no token outside the mask.
    pub log_legal: f64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            batch: 32,
            sampling: Sampling::GREEDY,
            seed: 0,
            room: Room::Static,
            log_probabilities: false,
            watched: Arc::default(),
            resampling: None,
            backtrack: BACKTRACK,
            trace: false,
            cpu_clock: None,
            self_check: SelfChecking::default(),
        }
    }
}

/// One generated text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeneratedText {
    /// The number of the prompt.
    pub prompt: usize,
    /// The index of the generation among those of the prompt.
    pub generation: usize,
    /// The tokens, without the end token.
    pub tokens: Vec<u32>,
    /// For each token, whether it was forced, that is, the only one allowed.
    pub forced: Vec<bool>,
    /// The reason why the text ended.
    pub end: End,
    /// The natural logarithm of the probability that the unmasked model, at temperature 1, gives to each token, and at the end to
    /// the end token if there is one.
    pub log_probabilities: Option<Vec<f32>>,
    /// The natural logarithm of the probability that the mask allowed at each token. This is the sum of the softmax over the
    /// allowed tokens; the logits are divided by the temperature (1 if greedy), before top-k, top-p and min-p. It has the length of
    /// `log_probabilities` and is logged with them.
    pub log_allowed: Option<Vec<f32>>,
    /// For each watched token that was forced: its index in `tokens`, and the most likely token of the unmasked model there. If a
    /// text was cut off at its length, the places that the model did not read any more are missing.
    pub preferred: Vec<(usize, u32)>,
    /// How often the geometry left no token; `None` without a geometry.
    pub dead_ends: Option<DeadEnds>,
}

/// The result of a generation.
#[derive(Debug, Clone, Default)]
pub struct GenerationResult {
    /// The finished texts, by prompt and generation.
    pub samples: Vec<GeneratedText>,
    /// The work that was done.
    pub counts: WorkCounts,
    /// The time by phase.
    pub timing: Timing,
    /// The groups of texts that were resampled, by prompt and generation.
    pub resampled: Vec<ResampledGroup>,
    /// The phases of steps, if requested.
    pub spans: Vec<Span>,
    /// The time of each batch of finished texts, in order.
    pub batches: Vec<BatchSeconds>,
    /// Whether the job was cancelled, so that texts are missing.
    pub interrupted: bool,
    /// The result of the self-check, if a device was to write the texts.
    pub self_check: Option<SelfCheck>,
}

impl GenerationResult {
    /// Sorts texts and groups by prompt, whatever order they finished in, and counts the tokens of the texts.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.samples.sort_unstable_by_key(|sample| (sample.prompt, sample.generation));
        self.resampled.sort_unstable_by_key(|group| (group.prompt, group.first));
        let forced = |text: &GeneratedText| text.forced.iter().filter(|forced| **forced).count() as u64;
        self.counts.generated_tokens = self.samples.iter().map(|text| text.tokens.len() as u64).sum();
        self.counts.forced_tokens = self.samples.iter().map(forced).sum();
        self
    }
}

/// A decoder that generates texts.
pub struct Engine {
    decoder: Decoder,
}

impl From<Decoder> for Engine {
    fn from(decoder: Decoder) -> Self {
        Engine { decoder }
    }
}

impl Engine {
    /// Loads a Hugging Face checkpoint.
    ///
    /// # Errors
    /// If the config or weights are missing, broken or of another model, a weight is not finite, or the device has no room.
    pub fn load(dir: &Path, device: &Device) -> Result<Self> {
        Ok(Decoder::load(dir, device)?.into())
    }

    /// Returns the decoder that computes the logits.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Generates for all prompts. A cancelled job is not an error: the finished texts are returned.
    ///
    /// # Errors
    /// If a prompt does not fit into the context, the cache does not fit into memory, a logit processor allows no token, or the
    /// device fails. The error is [`Error::DeviceLost`] if candle cannot continue in this process.
    pub fn generate(&mut self, prompts: &[Prompt], options: &Options, job: &Job) -> Result<GenerationResult> {
        self.generate_keeping(prompts, options, &mut NoSink, job)
    }

    /// Generates like [`Engine::generate`], and passes each text to `keeper` as soon as it is finished, in any order.
    ///
    /// # Errors
    /// Like [`Engine::generate`], or if the keeper returns an error.
    pub(crate) fn generate_keeping(
        &mut self,
        prompts: &[Prompt],
        options: &Options,
        keeper: &mut dyn TextSink,
        job: &Job,
    ) -> Result<GenerationResult> {
        self.run(prompts, options, None, keeper, job)
    }

    /// Generates like [`Engine::generate`], with decode steps on the device that `start` returns, as on a GPU. The device does the
    /// steps if the run is suitable for it: an automaton or no logit processor, a static cache, and nothing logged. Tests pass a
    /// device that is not a GPU.
    ///
    /// # Errors
    /// Like [`Engine::generate`]. It is not an error if the device cannot be started or does not support the run; [`Engine::note`]
    /// then has the reason.
    pub fn generate_on(
        &mut self,
        start: &(dyn Fn() -> Result<Box<dyn Gpu>> + Sync),
        (prompts, options): (&[Prompt], &Options),
        steps: KernelSteps,
        job: &Job,
    ) -> Result<GenerationResult> {
        self.run(prompts, options, Some(Starter { start, steps }), &mut NoSink, job)
    }

    /// Returns the reason why candle's operations had to do the steps of a GPU, if so.
    pub fn note(&self) -> Option<&str> {
        self.decoder.refusal()
    }

    fn run(
        &mut self,
        prompts: &[Prompt],
        options: &Options,
        starter: Option<Starter<'_>>,
        keeper: &mut dyn TextSink,
        job: &Job,
    ) -> Result<GenerationResult> {
        check(prompts, options, self.decoder.config())?;
        let total = prompts.iter().fold(0u64, |sum, prompt| sum.saturating_add(prompt.generations as u64));
        job.observer().begin("generate", Some(total), drift_core::job::Unit::Items);
        job.observer().advance(prompts.iter().map(|prompt| prompt.done.len() as u64).sum());
        // Inside the thread pool, parallel loops start at once; from outside, each would wait for a worker to wake.
        let generated = rayon::scope(|_| {
            let decoder = &mut self.decoder;
            let start = || cuda::start(decoder.device(), decoder.config());
            let own = decoder.device().steps().by_kernels();
            // The caller's device has priority, because tests pass one that is not a GPU.
            let own = own.map(|steps| Starter { start: &start, steps });
            decode::generate(decoder, (prompts, options), starter.or(own), keeper, job)
        });
        job.observer().end();
        Ok(generated?.settled())
    }
}

/// Refuses invalid arguments before anything is computed.
fn check(prompts: &[Prompt], options: &Options, config: &Config) -> Result<()> {
    if options.batch == 0 {
        return Err(Error::parameter(parameter::BATCH, "a batch of 0 rows", "give at least 1"));
    }
    options.sampling.check()?;
    check_resampling(options)?;
    let of_prompt = |prompt: &Prompt| {
        let text = prompt.expected_tokens.checked_mul(TOKEN_BYTES)?.checked_add(TEXT_BYTES)?;
        checked_product(&[prompt.generations, text])
    };
    let texts = checked_sum(&prompts.iter().map(of_prompt).collect::<Vec<_>>());
    check_fits("the texts", texts, free_memory(), &format!("give fewer {}", parameter::GENERATIONS))?;
    let (context, vocab) = (config.max_position_embeddings, config.vocab_size);
    for prompt in prompts {
        let place = format!("the prompt of molecule {}", prompt.number + 1);
        let tokens = prompt.tokens.len();
        if tokens == 0 {
            return Err(Error::input(place, "is empty", "give at least one token"));
        }
        if tokens >= context {
            let problem = format!("has {tokens} tokens, the model's context {context}");
            return Err(Error::input(place, problem, "leave this molecule out"));
        }
        if let Some(id) = prompt.tokens.iter().find(|id| **id as usize >= vocab) {
            let problem = format!("contains token {id}, the model has {vocab} rows");
            return Err(Error::input(place, problem, "give the tokenizer that the model was trained with"));
        }
    }
    Ok(())
}

/// Refuses an invalid resampling.
fn check_resampling(options: &Options) -> Result<()> {
    let Some(Resampling { draws, .. }) = options.resampling else { return Ok(()) };
    let refuse =
        |problem: String, remedy: String| Err(Error::parameter(parameter::RESAMPLE, problem, remedy));
    let batch = options.batch;
    if draws < 2 {
        let problem = format!("{draws} texts cannot be weighted against one another");
        return refuse(problem, "give at least 2".to_owned());
    }
    if draws > batch {
        let problem = format!("{draws} texts are drawn together, a batch has {batch} rows");
        return refuse(problem, format!("give {} at least {draws}", parameter::BATCH));
    }
    if options.sampling.temperature.is_none() {
        let problem = "a greedy preset does not sample: all texts of a molecule are the same";
        return refuse(problem.to_owned(), format!("give another {}", parameter::PRESET));
    }
    Ok(())
}
