//! Drawing one token.
//!
//! Each token has noise of its own at each position of each sample (Gumbel's, so that the largest sum of logit and
//! noise is a draw from the softmax). A logit processor then changes a draw only if it forbids the winner: text that is
//! legal anyway comes out the same with and without it, as long as top-k, top-p and min-p keep the same tokens.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::presets::Sampling;
use crate::error::{Error, Result};

/// The logits that may be drawn from.
#[derive(Debug, Clone, Copy)]
pub enum Candidates<'a> {
    /// All of a vocabulary, but the listed ids (sorted).
    Except(&'a [f32], &'a [u32]),
    /// These ids (sorted) of a vocabulary.
    Only(&'a [f32], &'a [u32]),
    /// Some ids (`ids`, sorted) of which `logits` are known for the sorted `known`.
    Listed {
        /// Logits of `known`.
        logits: &'a [f32],
        /// Sorted ids.
        known: &'a [u32],
        /// Those among them that are allowed.
        ids: &'a [u32],
    },
}

impl Candidates<'_> {
    /// Calls `visit` with each id, in order, and its logit.
    fn each(&self, mut visit: impl FnMut(u32, f32)) {
        match *self {
            Candidates::Except(logits, excluded) => {
                let mut excluded = excluded.iter().copied().peekable();
                for (id, logit) in (0u32..).zip(logits) {
                    if excluded.next_if_eq(&id).is_none() {
                        visit(id, *logit);
                    }
                }
            }
            Candidates::Only(logits, ids) => {
                for id in ids {
                    if let Some(logit) = logits.get(*id as usize) {
                        visit(*id, *logit);
                    }
                }
            }
            Candidates::Listed { logits, known, ids } => {
                let mut at = 0;
                for id in ids {
                    at += known[at..].partition_point(|known| known < id);
                    if known.get(at) == Some(id) {
                        visit(*id, logits[at]);
                    }
                }
            }
        }
    }
}

/// The noise of one sample.
#[derive(Debug, Clone)]
pub struct Noise {
    random: ChaCha8Rng,
}

impl Noise {
    /// Of generation `generation` of prompt `prompt`.
    pub fn new(seed: u64, prompt: usize, generation: usize) -> Self {
        Noise::renewed(seed, prompt, generation, 0)
    }

    /// Other noise of the same sample: positions that were drawn and given up are drawn afresh. Number 0 is that of
    /// [`Noise::new`].
    pub fn renewed(seed: u64, prompt: usize, generation: usize, number: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(prompt as u64).to_le_bytes());
        key[16..24].copy_from_slice(&(generation as u64).to_le_bytes());
        key[24..].copy_from_slice(&number.to_le_bytes());
        Noise { random: ChaCha8Rng::from_seed(key) }
    }

    /// The key of its ChaCha8, in words: seed, prompt, generation and number, the lower half of each first.
    pub fn key(&self) -> [u32; 8] {
        let bytes = self.random.get_seed();
        std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])))
    }

    /// The noise at one position: word `id` of stream `position`.
    fn at(&mut self, position: usize) -> impl FnMut(u32) -> f64 {
        let random = &mut self.random;
        random.set_stream(position as u64);
        random.set_word_pos(0);
        let mut next = 0;
        move |id| {
            // Reading on is faster than seeking.
            if !(next..next + 64).contains(&id) {
                random.set_word_pos(u128::from(id));
                next = id;
            }
            while next < id {
                random.next_u32();
                next += 1;
            }
            next += 1;
            gumbel(random.next_u32())
        }
    }
}

/// Gumbel's distribution, from 32 uniform bits.
fn gumbel(bits: u32) -> f64 {
    let uniform = (f64::from(bits) + 0.5) / 4_294_967_296.0;
    -(-uniform.ln()).ln()
}

/// A token and its logit, divided by the temperature.
type Scored = (f64, u32);

/// Higher logits first, then smaller ids.
fn rank(a: &Scored, b: &Scored) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// Draws a token for `position` of a text.
///
/// # Errors
/// If nothing is allowed, or a logit is no number.
pub fn draw(
    candidates: Candidates<'_>,
    sampling: &Sampling,
    noise: &mut Noise,
    position: usize,
) -> Result<u32> {
    let Some(temperature) = sampling.temperature else { return most_likely(candidates) };
    let mut kept: Vec<Scored> = Vec::new();
    candidates.each(|id, logit| kept.push((f64::from(logit) / temperature, id)));
    let best = kept.iter().copied().min_by(rank).ok_or_else(nothing_allowed)?.0;
    if !best.is_finite() {
        return Err(not_finite());
    }
    if let Some(k) = sampling.top_k {
        keep_top_k(&mut kept, k);
    }
    if let Some(p) = sampling.top_p.filter(|p| *p < 1.0) {
        keep_top_p(&mut kept, p, best);
    }
    if let Some(p) = sampling.min_p {
        kept.retain(|(score, _)| *score >= best + p.ln());
    }
    Ok(winner(kept, noise, position))
}

/// The token with the largest sum of score and noise.
fn winner(mut kept: Vec<Scored>, noise: &mut Noise, position: usize) -> u32 {
    let highest_noise = gumbel(u32::MAX);
    let lowest_noise = gumbel(0);
    let best = kept.iter().map(|(score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
    // Whoever cannot win needs no noise.
    kept.retain(|(score, _)| score + highest_noise >= best + lowest_noise);
    kept.sort_unstable_by_key(|(_, id)| *id);
    let mut noise = noise.at(position);
    let sums = kept.into_iter().map(|(score, id)| (score + noise(id), id));
    sums.min_by(rank).expect("the best is kept").1
}

/// The `k` best, and those that are as good as the last of them.
fn keep_top_k(kept: &mut Vec<Scored>, k: usize) {
    if k < kept.len() {
        let least = kept.select_nth_unstable_by(k - 1, rank).1.0;
        kept.retain(|(score, _)| *score >= least);
    }
}

/// The best, as long as those before have less than `p` of the probability.
fn keep_top_p(kept: &mut Vec<Scored>, p: f64, best: f64) {
    let weight = |(score, _): &Scored| (score - best).exp();
    let wanted = p * kept.iter().map(weight).sum::<f64>();
    // Few are enough as a rule, so that the rest need not be sorted.
    let mut few = 64;
    while few < kept.len() {
        kept.select_nth_unstable_by(few - 1, rank);
        if kept[..few].iter().map(weight).sum::<f64>() > wanted {
            kept.truncate(few);
            break;
        }
        few *= 8;
    }
    kept.sort_unstable_by(rank);
    let mut before = 0.0;
    let end = kept.iter().position(|scored| {
        let is_over = before >= wanted;
        before += weight(scored);
        is_over
    });
    kept.truncate(end.unwrap_or(kept.len()));
}

/// The most likely token; the smallest id among equals.
///
/// # Errors
/// If nothing is allowed, or the best logit is no number.
pub fn most_likely(candidates: Candidates<'_>) -> Result<u32> {
    let mut best: Option<(f32, u32)> = None;
    candidates.each(|id, logit| {
        if best.is_none_or(|(most, _)| logit > most || logit.is_nan()) {
            best = Some((logit, id));
        }
    });
    match best {
        None => Err(nothing_allowed()),
        Some((logit, _)) if !logit.is_finite() => Err(not_finite()),
        Some((_, id)) => Ok(id),
    }
}

/// Natural logarithm of the softmax at `id`.
pub fn log_probability(logits: &[f32], id: u32) -> f32 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - best).exp()).sum();
    let logit = logits.get(id as usize).copied().unwrap_or(f32::NEG_INFINITY);
    (f64::from(logit - best) - sum.ln()) as f32
}

/// What is said where no token is left.
pub(crate) fn nothing_allowed() -> Error {
    Error::input(
        "the logit processor",
        "allows no token that the model has",
        "use the tokenizer of the model",
    )
}

/// What is said of a logit that is no number.
pub(crate) fn not_finite() -> Error {
    Error::input("the model", "its logits are not finite numbers", "the checkpoint is broken")
}
