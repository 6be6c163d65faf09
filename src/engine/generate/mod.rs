//! Batched generation under logit processors.
//!
//! Give an [`Engine`] the [`Prompt`]s, one per molecule, each with its [`Constraint`](drift_core::constraint::Constraint)
//! and number of generations; get the [`GeneratedText`]s in the same order. With the same seed a sample is the same whatever
//! the batch, the order and the number of threads (on the CPU, in f32).

mod admit;
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

pub use check_report::{Doubt, NearTie, SelfCheck, SelfChecking, Verdict};
pub use clock::{BatchSeconds, CpuClock, Phase, Span, Timing};
pub use counts::{Traffic, WorkCounts};
pub use drift_core::sampling::Sampling;
pub use score::Text;
pub use sink::{NoSink, TextDelta, TextSink};

use self::on_device::Starter;
use crate::model::cuda::{self, Gpu};
use crate::model::{
    Config, Decoder, Device, KernelSteps, Room, check_fits, checked_product, checked_sum, free_memory,
};
use crate::parameter;
use drift_core::constraint::Constraint;
use drift_core::error::{Error, Result};
use drift_core::job::Job;

/// What a token of a text takes until the end: its id, its characters, its marks.
const TOKEN_BYTES: usize = 16;

/// What a text takes beside its tokens.
const TEXT_BYTES: usize = 512;

/// One molecule to generate for.
#[derive(Clone)]
pub struct Prompt {
    /// Its number among all, of which these may be some: draws and results go by it.
    pub number: usize,
    /// The prompt; at least one token.
    pub tokens: Vec<u32>,
    /// Its texts.
    pub generations: usize,
    /// Sorted: those of them that are written already. Of texts that are resampled together all, or none.
    pub done: Arc<[usize]>,
    /// What they may be.
    pub constraint: Arc<dyn Constraint>,
    /// The most tokens of a text, its end included; less where the context ends first.
    pub most_tokens: usize,
    /// Tokens of a text, roughly: longer ones start first.
    pub expected_tokens: usize,
}

/// How to generate.
#[derive(Debug, Clone)]
pub struct Options {
    /// Rows of a batch.
    pub batch: usize,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Seed of all draws.
    pub seed: u64,
    /// Room of the KV cache.
    pub room: Room,
    /// Whether to log the probability that the model gives to each token; costs the whole LM head at each token.
    pub log_probabilities: bool,
    /// Sorted ids: where one of them is forced, [`GeneratedText::preferred`] says what the model itself would have written;
    /// costs the whole LM head there.
    pub watched: Arc<[u32]>,
    /// Whether the texts of a molecule are weighted against one another while they are written; logs probabilities too.
    pub resampling: Option<Resampling>,
    /// Whether to keep a [`Span`] for each phase of each step.
    pub trace: bool,
    /// What tells the CPU seconds of [`BatchSeconds`].
    pub cpu_clock: Option<CpuClock>,
    /// How a device is checked before it writes texts. The CPU is none.
    pub self_check: SelfChecking,
}

impl Options {
    /// Whether all logits are computed at each token.
    fn logs(&self) -> bool {
        self.log_probabilities || self.resampling.is_some()
    }
}

/// Sequential importance resampling of the texts of a molecule, so that they follow the model's distribution given that a
/// text is legal, which masks alone do not draw from. Each text has the weight ∏ Z, where Z is the share that the mask left
/// at each token ([`GeneratedText::log_allowed`]). N. Chopin and O. Papaspiliopoulos, An Introduction to Sequential Monte
/// Carlo (2020), chapters 9 and 10.
#[derive(Debug, Clone)]
pub struct Resampling {
    /// The most texts that are drawn together. The texts of a molecule are cut into groups of at most so many, as even as
    /// may be.
    pub draws: usize,
    /// Sorted ids of tokens that end a block: there a text waits until the others of its group have ended as many.
    pub block_ends: Arc<[u32]>,
}

/// What became of a group of texts that were resampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resampled {
    /// Number of the prompt.
    pub prompt: usize,
    /// The first of the group's generations.
    pub first: usize,
    /// Its texts.
    pub draws: usize,
    /// Effective sample size of the finished texts, (Σw)² / Σw², before the last resampling, after which all weigh the same.
    pub effective: f64,
    /// The least effective sample size at the end of a block or of all.
    pub least_effective: f64,
    /// Resamplings on the way, without the last.
    pub resamplings: usize,
    /// Of the texts at the start those that any text at the end goes back to.
    pub ancestors: usize,
    /// Natural logarithm of an unbiased estimate of the probability that no token falls outside the mask.
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
            trace: false,
            cpu_clock: None,
            self_check: SelfChecking::default(),
        }
    }
}

/// Why a text is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The end of text was written, or forced.
    Eos,
    /// No more tokens were allowed.
    Length,
}

/// One generated text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeneratedText {
    /// Number of the prompt.
    pub prompt: usize,
    /// Which of its generations.
    pub generation: usize,
    /// The text, without the end of text.
    pub tokens: Vec<u32>,
    /// Whether each token was forced, the only one allowed.
    pub forced: Vec<bool>,
    /// Why it is over.
    pub end: End,
    /// Natural logarithm of the probability that the unmasked model, at temperature 1, gives to each token, and last to
    /// the end of text if there is one.
    pub log_probabilities: Option<Vec<f32>>,
    /// Natural logarithm of the probability that the mask left at each token: the sum over the tokens that it allows of the
    /// softmax of the logits, divided by the temperature (1 if greedy), before top-k, top-p and min-p. As long as
    /// `log_probabilities`, and logged with them.
    pub log_allowed: Option<Vec<f32>>,
    /// Where a watched token was forced: its place among `tokens`, and the most likely token of the unmasked model there.
    /// A text that was cut off at its length lacks the places that the model never read up to.
    pub preferred: Vec<(usize, u32)>,
}

/// What was generated.
#[derive(Debug, Clone, Default)]
pub struct Generated {
    /// Finished texts, by prompt and generation.
    pub samples: Vec<GeneratedText>,
    /// How much work it was.
    pub counts: WorkCounts,
    /// Where the time went.
    pub timing: Timing,
    /// Groups of texts that were resampled, by prompt and generation.
    pub resampled: Vec<Resampled>,
    /// Phases of steps, if asked for.
    pub spans: Vec<Span>,
    /// The time of one batch of finished texts after the other.
    pub batches: Vec<BatchSeconds>,
    /// Whether the job was cancelled, so that samples are missing.
    pub interrupted: bool,
    /// What the self-check of the device came to, where one was to write the texts.
    pub self_check: Option<SelfCheck>,
}

impl Generated {
    /// Texts and groups in the order of prompts, whichever finished first, and the tokens of texts counted.
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

/// Writes texts with a decoder.
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
    /// If config or weights are missing, broken or of another model, a weight is not finite, or the device has no room.
    pub fn load(dir: &Path, device: &Device) -> Result<Self> {
        Ok(Decoder::load(dir, device)?.into())
    }

    /// The decoder that computes the logits.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Generates for all prompts. A cancelled job is no error: what was finished is returned.
    ///
    /// # Errors
    /// If a prompt does not fit into the context, the cache not into memory, a logit processor allows nothing, or the
    /// device fails: [`Error::DeviceLost`] where no candle can go on in this process.
    pub fn generate(&mut self, prompts: &[Prompt], options: &Options, job: &Job) -> Result<Generated> {
        self.generate_keeping(prompts, options, &mut NoSink, job)
    }

    /// Generates as [`Engine::generate`] does, and hands each text to `keeper` as soon as it is finished, in any order.
    ///
    /// # Errors
    /// As [`Engine::generate`], and what the keeper gives.
    pub fn generate_keeping(
        &mut self,
        prompts: &[Prompt],
        options: &Options,
        keeper: &mut dyn TextSink,
        job: &Job,
    ) -> Result<Generated> {
        self.run(prompts, options, None, keeper, job)
    }

    /// As [`Engine::generate`], with the steps that write text on a device that `start` gives, as on a GPU, where the run is one
    /// for it: an automaton or no logit processor, a static cache, and nothing logged. Tests give one that is none.
    ///
    /// # Errors
    /// As [`Engine::generate`]. A device that cannot be started, or does not take the run, is none: [`Engine::note`] says why.
    pub fn generate_on(
        &mut self,
        start: &(dyn Fn() -> Result<Box<dyn Gpu>> + Sync),
        (prompts, options): (&[Prompt], &Options),
        steps: KernelSteps,
        job: &Job,
    ) -> Result<Generated> {
        self.run(prompts, options, Some(Starter { start, steps }), &mut NoSink, job)
    }

    /// Why a GPU's steps were done by candle's operations, if they had to be.
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
    ) -> Result<Generated> {
        check(prompts, options, self.decoder.config())?;
        let total = prompts.iter().fold(0u64, |sum, prompt| sum.saturating_add(prompt.generations as u64));
        job.observer().begin("generate", Some(total), drift_core::job::Unit::Items);
        job.observer().advance(prompts.iter().map(|prompt| prompt.done.len() as u64).sum());
        // Inside the pool parallel loops start at once; from outside each would wait for a worker to wake.
        let generated = rayon::scope(|_| {
            let decoder = &mut self.decoder;
            let start = || cuda::start(decoder.device(), decoder.config());
            let own = decoder.device().steps().by_kernels();
            // What the caller starts goes first: tests give a device that is none.
            let own = own.map(|steps| Starter { start: &start, steps });
            decode::generate(decoder, (prompts, options), starter.or(own), keeper, job)
        });
        job.observer().end();
        Ok(generated?.settled())
    }
}

/// Refuses what cannot work, before anything is computed.
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
    for (at, prompt) in prompts.iter().enumerate() {
        let place = format!("prompt {}", at + 1);
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

/// Refuses a resampling that cannot work.
fn check_resampling(options: &Options) -> Result<()> {
    let Some(Resampling { draws, .. }) = options.resampling else { return Ok(()) };
    let refuse =
        |problem: String, remedy: String| Err(Error::parameter(parameter::RESAMPLE, problem, remedy));
    let batch = options.batch;
    if draws < 2 {
        return refuse(
            format!("{draws} texts cannot be weighted against one another"),
            "give at least 2".into(),
        );
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
