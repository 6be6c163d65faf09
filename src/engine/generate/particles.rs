//! Texts of a molecule that are weighted against one another: their groups, their weights, and the choice of the texts that
//! continue.
//!
//! A mask renormalises the distribution at each token, so the probability of a text is too high by the factor 1/∏ Z. Each text
//! therefore has the weight ∏ Z. When the weights of a group have become too uneven, texts of low weight are replaced by copies of
//! texts of higher weight, and all weights are equal again.

use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A group is resampled at a block if its effective sample size is below this share of its texts.
const LEAST_EFFECTIVE: f64 = 0.5;

/// A group of texts that are being written.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The generations of its texts.
    pub generations: Range<usize>,
    /// The number of ended blocks at which its texts wait for one another.
    pub blocks: usize,
    /// The number of resamplings so far.
    pub resamplings: usize,
    /// The smallest effective sample size so far.
    pub least_effective: f64,
    /// The sum of the logarithms of the mean weights at each resampling.
    pub log_legal: f64,
}

/// Returns the group of generation `generation`. The `generations` are split into as few groups of at most `draws` as possible, of sizes
/// as even as possible.
pub(super) fn group_of(generation: usize, generations: usize, draws: usize) -> Range<usize> {
    // In 128 bits, because products of two numbers may overflow 64.
    let (at, all) = (generation as u128, generations as u128);
    let groups = all.div_ceil(draws as u128);
    // The group whose range, as computed by `start`, contains the generation.
    let group = ((at + 1) * groups - 1) / all;
    let start = |group: u128| (group * all / groups) as usize;
    start(group)..start(group + 1)
}

impl Group {
    /// Returns a group at its start.
    pub(super) fn new(generations: Range<usize>) -> Self {
        let least_effective = generations.len() as f64;
        Group { generations, blocks: 1, resamplings: 0, least_effective, log_legal: 0.0 }
    }

    /// Updates the smallest effective sample size with the logarithms of all weights. Returns the current effective sample size.
    pub(super) fn weigh(&mut self, logs: &[f64]) -> f64 {
        let effective = effective(logs);
        self.least_effective = self.least_effective.min(effective);
        effective
    }

    /// Returns whether the effective sample size is so low that the group must be resampled.
    pub(super) fn is_uneven(&self, effective: f64) -> bool {
        effective < LEAST_EFFECTIVE * self.generations.len() as f64
    }

    /// For each text, the text from which it continues; a text that has successors continues itself. Afterwards all weights are
    /// equal. This is systematic resampling: each text has as many successors as its share of the weight, rounded up or down at
    /// random.
    pub(super) fn resample(&mut self, seed: u64, prompt: usize, logs: &[f64]) -> Vec<usize> {
        let weights = weights(logs);
        let sum: f64 = weights.iter().sum();
        self.log_legal += highest(logs) + (sum / weights.len() as f64).ln();
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(prompt as u64).to_le_bytes());
        key[16..24].copy_from_slice(&(self.generations.start as u64).to_le_bytes());
        // Different from the numbers in the keys of noise, which count up from 0.
        key[24..].copy_from_slice(&(u64::MAX - self.resamplings as u64).to_le_bytes());
        self.resamplings += 1;
        let place = ChaCha8Rng::from_seed(key).random::<f64>();
        parents(&successors(&weights, place))
    }
}

/// Returns the largest logarithm; 0 if it is not finite.
fn highest(logs: &[f64]) -> f64 {
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if highest.is_finite() { highest } else { 0.0 }
}

/// Weights from their logarithms, scaled so that the largest is 1; all equal if none is above 0.
fn weights(logs: &[f64]) -> Vec<f64> {
    let highest = highest(logs);
    let weights: Vec<f64> = logs.iter().map(|log| (log - highest).exp()).collect();
    if weights.iter().sum::<f64>() > 0.0 { weights } else { vec![1.0; logs.len()] }
}

/// Returns the effective sample size, (Σw)² / Σw².
fn effective(logs: &[f64]) -> f64 {
    let weights = weights(logs);
    let sum: f64 = weights.iter().sum();
    sum * sum / weights.iter().map(|weight| weight * weight).sum::<f64>()
}

/// Returns the number of successors of each text; they add up to the number of texts. `place` is from 0 to 1.
fn successors(weights: &[f64], place: f64) -> Vec<usize> {
    let count = weights.len();
    // Equal weights must change nothing, but rounding could give one text two successors.
    if weights.iter().all(|weight| *weight == weights[0]) {
        return vec![1; count];
    }
    let each = weights.iter().sum::<f64>() / count as f64;
    let (mut given, mut before) = (0, 0.0);
    let mut successors: Vec<usize> = Vec::with_capacity(count);
    for weight in weights {
        before += weight;
        // The number of points `place`, `1 + place`, … up to here, in units of the mean weight; at least as many as were given out
        // already.
        let up_to = ((before / each - place).ceil().max(0.0) as usize).clamp(given, count);
        successors.push(up_to - given);
        given = up_to;
    }
    // Successors that are missing because of rounding go to the last text with a positive weight.
    if let Some(last) = weights.iter().rposition(|weight| *weight > 0.0) {
        successors[last] += count - given;
    }
    successors
}

/// Returns the parent of each text. Texts with successors stay in place; the others are replaced by copies.
fn parents(successors: &[usize]) -> Vec<usize> {
    let copies = successors.iter().enumerate();
    let mut copies = copies.flat_map(|(at, count)| std::iter::repeat_n(at, count.saturating_sub(1)));
    let parent = |(at, count): (usize, &usize)| match count {
        0 => copies.next().unwrap_or(at),
        _ => at,
    };
    successors.iter().enumerate().map(parent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_as_even_as_may_be() {
        for (generations, draws, expected) in [
            (8, 8, vec![8]),
            (14, 8, vec![7, 7]),
            (17, 8, vec![6, 6, 5]),
            (3, 8, vec![3]),
            (9, 2, vec![2, 2, 2, 2, 1]),
        ] {
            let (mut found, mut at) = (Vec::new(), 0);
            while at < generations {
                let group = group_of(at, generations, draws);
                assert_eq!(group.start, at);
                assert!(group.clone().all(|one| group_of(one, generations, draws) == group));
                found.push(group.len());
                at = group.end;
            }
            found.sort_unstable();
            let mut expected = expected;
            expected.sort_unstable();
            assert_eq!(found, expected, "{generations} by {draws}");
        }
        assert_eq!(group_of(usize::MAX - 1, usize::MAX, 2).end, usize::MAX);
    }

    #[test]
    fn each_text_has_as_many_successors_as_its_share_rounded_up_or_down() {
        let weights = [0.1, 0.0, 0.45, 0.2, 0.25];
        let mut sums = [0; 5];
        for step in 0..1000 {
            let found = successors(&weights, (f64::from(step) + 0.5) / 1000.0);
            assert_eq!(found.iter().sum::<usize>(), 5);
            for ((found, weight), sum) in found.iter().zip(weights).zip(&mut sums) {
                let share: f64 = weight * 5.0;
                assert!((share.floor()..=share.ceil()).contains(&(*found as f64)), "{found} of {share}");
                *sum += found;
            }
            let parents = parents(&found);
            for (at, count) in found.iter().enumerate() {
                assert_eq!(parents.iter().filter(|parent| **parent == at).count(), *count);
                assert!(*count == 0 || parents[at] == at);
            }
        }
        for (sum, weight) in sums.iter().zip(weights) {
            assert!((*sum as f64 - weight * 5000.0).abs() < 2.0, "{sum} of {weight}");
        }
        assert_eq!(successors(&[0.3; 7], 1.0 - 1e-17), [1; 7]);
        assert_eq!(successors(&[1.0, 0.0, 0.0], 0.999), [3, 0, 0]);
    }

    #[test]
    fn weights_are_looked_at_by_their_logarithms() {
        let mut group = Group::new(0..4);
        // So low that exp would return 0.
        let logs = [-2000.0, -2000.0, -2000.0 - 3f64.ln(), -1.0e6];
        let effective = group.weigh(&logs);
        assert!((effective - (7.0f64 / 3.0).powi(2) / (2.0 + 1.0 / 9.0)).abs() < 1e-12);
        assert!(!group.is_uneven(effective) && group.is_uneven(1.9));
        group.resample(1, 2, &logs);
        assert!((group.log_legal - (-2000.0 + (7.0f64 / 12.0).ln())).abs() < 1e-9);
        assert_eq!(group.weigh(&[0.0; 4]), 4.0);
        assert_eq!(group.least_effective, effective);
        assert_eq!(group.resample(1, 2, &[-5.0; 4]), [0, 1, 2, 3]);
        assert_eq!(group.weigh(&[f64::NEG_INFINITY; 4]), 4.0);
    }
}
