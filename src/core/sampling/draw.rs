//! Samples one token.
//!
//! Sampling adds Gumbel noise to the logits and takes the largest sum, which is a draw from the softmax. The noise depends only on
//! the sample, the position and the token. So a logit processor changes a draw only if it forbids the winner: a text that is legal
//! anyway is the same with and without the processor, as long as top-k, top-p and min-p keep the same tokens.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::presets::Sampling;
use crate::error::{Error, Result};

/// The tokens to choose from, with their logits.
#[derive(Debug, Clone, Copy)]
pub enum Candidates<'a> {
    /// Logits `[vocab]`, without the listed ids (sorted).
    Except(&'a [f32], &'a [u32]),
    /// Logits `[vocab]`, restricted to these ids (sorted).
    Only(&'a [f32], &'a [u32]),
    /// The allowed `ids` (sorted), where `logits` has only the values of the sorted `known` ids.
    Listed {
        /// The logits of `known`.
        logits: &'a [f32],
        /// Sorted token ids.
        known: &'a [u32],
        /// The allowed ids among them.
        ids: &'a [u32],
    },
}

impl Candidates<'_> {
    /// Those of `ids` (sorted) among them.
    #[must_use]
    pub fn among<'i>(self, ids: &'i [u32]) -> Candidates<'i>
    where
        Self: 'i,
    {
        match self {
            Candidates::Except(logits, _) | Candidates::Only(logits, _) => Candidates::Only(logits, ids),
            Candidates::Listed { logits, known, .. } => Candidates::Listed { logits, known, ids },
        }
    }

    /// Calls `visit` with each id and its logit, in ascending order.
    fn each(&self, mut visit: impl FnMut(u32, f32)) {
        match *self {
            Candidates::Except(logits, excluded) => {
                for (first, logits) in runs(logits, excluded) {
                    for (id, logit) in (first..).zip(logits) {
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

/// Returns the runs of logits between excluded ids, each with its first id. Excluded ids may exceed the vocabulary.
fn runs<'a>(logits: &'a [f32], excluded: &'a [u32]) -> impl Iterator<Item = (u32, &'a [f32])> {
    let mut first = 0;
    excluded.iter().map(|id| *id as usize).chain([logits.len()]).map(move |end| {
        let end = end.min(logits.len());
        let run = (first as u32, logits.get(first..end).unwrap_or_default());
        first = end + 1;
        run
    })
}

/// The number of logits in a block of which only the maximum is taken.
const BLOCK: usize = 256;

/// Returns a logit that at least `k` tokens of a vocabulary reach: the `k`-th largest of the block maxima. Finding it moves no logits.
fn reached(logits: &[f32], excluded: &[u32], k: usize) -> f32 {
    let blocks = runs(logits, excluded).flat_map(|(_, logits)| logits.chunks(BLOCK));
    let mut maxima: Vec<f32> = blocks.map(maximum).collect();
    // With fewer than `k` blocks there is no such bound, so all logits are kept.
    if maxima.len() < k {
        return f32::NEG_INFINITY;
    }
    *maxima.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a)).1
}

/// Returns the largest number. It is inlined, so that the compiler uses the widest instructions that its caller enables.
#[inline(always)]
pub fn maximum(numbers: &[f32]) -> f32 {
    const LANES: usize = 16;
    // `f32::max` needs more instructions to handle NaN, for which `draw` checks itself.
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let (strips, rest) = numbers.as_chunks::<LANES>();
    let mut best = [f32::NEG_INFINITY; LANES];
    for strip in strips {
        for (best, number) in best.iter_mut().zip(strip) {
            *best = larger(*best, *number);
        }
    }
    best.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

/// The noise of one sample.
#[derive(Debug, Clone)]
pub struct Noise {
    random: ChaCha8Rng,
}

impl Noise {
    /// Returns the noise of generation `generation` of prompt `prompt`.
    pub fn new(seed: u64, prompt: usize, generation: usize) -> Self {
        Noise::renewed(seed, prompt, generation, 0)
    }

    /// Fresh noise for the same sample, for positions that were sampled and then rejected. Number 0 gives the noise of
    /// [`Noise::new`].
    pub fn renewed(seed: u64, prompt: usize, generation: usize, number: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(prompt as u64).to_le_bytes());
        key[16..24].copy_from_slice(&(generation as u64).to_le_bytes());
        key[24..].copy_from_slice(&number.to_le_bytes());
        Noise { random: ChaCha8Rng::from_seed(key) }
    }

    /// Returns the key of its ChaCha8 generator as words: seed, prompt, generation and number, the lower half of each first.
    pub fn key(&self) -> [u32; 8] {
        let bytes = self.random.get_seed();
        std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])))
    }

    /// Returns the noise at one position: word `id` of stream `position`.
    fn at(&mut self, position: usize) -> impl FnMut(u32) -> f64 {
        let random = &mut self.random;
        random.set_stream(position as u64);
        random.set_word_pos(0);
        let mut next = 0;
        move |id| {
            // Reading ahead is faster than seeking.
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

/// Gumbel noise from 32 uniform bits.
fn gumbel(bits: u32) -> f64 {
    // The half avoids 0 and 1, where the logarithms are infinite.
    let uniform = (f64::from(bits) + 0.5) / 4_294_967_296.0;
    -(-uniform.ln()).ln()
}

/// A token and its logit, divided by the temperature.
type ScoredToken = (f64, u32);

/// Orders by higher logit, then by smaller id.
fn rank(a: &ScoredToken, b: &ScoredToken) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// Samples the token at `position` of a text.
///
/// # Errors
/// If no token is allowed, a logit is NaN, or the largest logit is not finite.
pub fn draw(
    candidates: Candidates<'_>,
    sampling: &Sampling,
    noise: &mut Noise,
    position: usize,
) -> Result<u32> {
    // Greedy decoding needs no noise, and gives the same token for any seed.
    let Some(temperature) = sampling.temperature else { return most_likely(candidates) };
    // As in other engines, a top-k of 0 keeps all tokens.
    let top_k = sampling.top_k.filter(|k| *k > 0);
    // Few tokens of a whole vocabulary are among the best `k`, so most are dropped early.
    let least = match (candidates, top_k) {
        (Candidates::Except(logits, excluded), Some(k)) => reached(logits, excluded, k),
        _ => f32::NEG_INFINITY,
    };
    let (mut kept, mut is_broken): (Vec<ScoredToken>, _) = (Vec::new(), false);
    candidates.each(|id, logit| {
        is_broken |= logit.is_nan();
        if logit >= least {
            kept.push((f64::from(logit) / temperature, id));
        }
    });
    if is_broken {
        return Err(not_finite());
    }
    let best = kept.iter().copied().min_by(rank).ok_or_else(nothing_allowed)?.0;
    if !best.is_finite() {
        return Err(not_finite());
    }
    if let Some(k) = top_k {
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

/// Returns the token with the largest sum of score and noise.
fn winner(mut kept: Vec<ScoredToken>, noise: &mut Noise, position: usize) -> u32 {
    let highest_noise = gumbel(u32::MAX);
    let lowest_noise = gumbel(0);
    let best = kept.iter().map(|(score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
    // Tokens that cannot win need no noise.
    kept.retain(|(score, _)| score + highest_noise >= best + lowest_noise);
    // Noise is read by ascending id.
    kept.sort_unstable_by_key(|(_, id)| *id);
    let mut noise = noise.at(position);
    let sums = kept.into_iter().map(|(score, id)| (score + noise(id), id));
    sums.min_by(rank).expect("the best is kept").1
}

/// Keeps the `k` best tokens, and those that equal the last of them.
fn keep_top_k(kept: &mut Vec<ScoredToken>, k: usize) {
    if k < kept.len() {
        // Like transformers, keep tokens whose score equals that of the last one.
        let least = kept.select_nth_unstable_by(k - 1, rank).1.0;
        kept.retain(|(score, _)| *score >= least);
        // A fixed order, whatever the order before.
        kept.sort_unstable_by(rank);
    }
}

/// Keeps the best tokens. A token stays if those before it have less than `p` of the probability.
fn keep_top_p(kept: &mut Vec<ScoredToken>, p: f64, best: f64) {
    let weight = |(score, _): &ScoredToken| (score - best).exp();
    let wanted = p * kept.iter().map(weight).sum::<f64>();
    // A few tokens are usually enough, so the rest need not be sorted.
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

/// Returns the token with the largest logit; of equal ones the smallest id.
///
/// # Errors
/// If no token is allowed, or the largest logit is not finite.
pub fn most_likely(candidates: Candidates<'_>) -> Result<u32> {
    let mut best: Option<(f32, u32)> = None;
    candidates.each(|id, logit| {
        // A NaN stays the best once it is seen, because no number compares greater. It is refused below.
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

/// Returns the natural logarithm of the softmax of `logits` `[vocab]` at `id`.
pub fn log_probability(logits: &[f32], id: u32) -> f32 {
    let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // The largest logit is subtracted, so that no exponential overflows. The sum is in double precision, because a vocabulary has
    // many terms.
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - best).exp()).sum();
    let logit = logits.get(id as usize).copied().unwrap_or(f32::NEG_INFINITY);
    (f64::from(logit - best) - sum.ln()) as f32
}

/// Returns the error if no token is left.
pub fn nothing_allowed() -> Error {
    Error::input(
        "the logit processor",
        "allows no token that the model has",
        "use the tokenizer of the model",
    )
}

/// Returns the error for a logit that is not finite.
pub fn not_finite() -> Error {
    Error::input("the model", "its logits are not finite numbers", "the checkpoint is broken")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Logits with many ties, and tokens that have none.
    fn logit() -> impl Strategy<Value = f32> {
        prop_oneof![
            6 => (-20i8..20).prop_map(|n| f32::from(n) / 4.0),
            3 => -9.0f32..9.0,
            1 => Just(f32::NEG_INFINITY),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        /// A vocabulary but for some ids is looked through by blocks, a list of ids one by one.
        #[test]
        fn all_but_some_are_drawn_from_as_the_others_are(
            logits in prop::collection::vec(logit(), 1..3_000),
            excluded in prop::collection::btree_set(0u32..3_100, 0..40),
            k in prop::option::of(0usize..40),
            top_p in prop::option::of(0.1f64..1.0),
            seed: u64,
        ) {
            let excluded: Vec<u32> = excluded.into_iter().collect();
            let others: Vec<u32> = (0..logits.len() as u32).filter(|id| !excluded.contains(id)).collect();
            let (except, only) = (Candidates::Except(&logits, &excluded), Candidates::Only(&logits, &others));
            let sampling = Sampling { temperature: Some(0.9), top_k: k, top_p, min_p: None };
            for position in 0..4 {
                let of = |candidates| draw(candidates, &sampling, &mut Noise::new(seed, 0, 0), position);
                prop_assert_eq!(of(except).ok(), of(only).ok());
            }
            prop_assert_eq!(most_likely(except).ok(), most_likely(only).ok());
        }

        #[test]
        fn a_logit_that_is_no_number_is_refused(
            mut logits in prop::collection::vec(logit(), 1..1_000),
            at: prop::sample::Index,
            is_negative: bool,
            k in prop::option::of(1usize..40),
        ) {
            let at = at.index(logits.len());
            logits[at] = if is_negative { -f32::NAN } else { f32::NAN };
            let sampling = Sampling { temperature: Some(1.0), top_k: k, top_p: None, min_p: None };
            prop_assert!(draw(Candidates::Except(&logits, &[]), &sampling, &mut Noise::new(1, 2, 3), 4).is_err());
            prop_assert!(most_likely(Candidates::Except(&logits, &[])).is_err());
        }
    }
}
