//! Counts blocks by their number of tokens.

use serde::Serialize;

/// Blocks with more tokens are counted as having this many. A block of the fixed encoding has at most 36 bytes.
const MOST: usize = 63;

/// Counts of blocks by the number of tokens that overlap them, including the brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histogram([u64; MOST + 1]);

/// Statistics of the number of tokens per block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockTokenStats {
    /// The mean.
    pub mean: f64,
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
    /// The most frequent number of tokens.
    pub usual: u64,
    /// The share of blocks with another number of tokens, 0 to 1.
    pub off_share: f64,
    /// The mean absolute difference from `usual`, over all blocks.
    pub off_tokens_per_block: f64,
}

impl BlockTokenStats {
    /// Returns the mean plus the mean difference from the usual number: each token too many or too few costs as much as a token.
    pub(crate) fn with_drift(&self) -> f64 {
        self.mean + self.off_tokens_per_block
    }
}

impl Histogram {
    /// A histogram without blocks.
    pub(crate) const EMPTY: Histogram = Histogram([0; MOST + 1]);

    /// Counts a block with `tokens` tokens.
    pub fn count(&mut self, tokens: usize) {
        self.0[tokens.min(MOST)] += 1;
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Histogram) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }

    /// Returns the numbers of tokens that occur, each with its number of blocks.
    fn present(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        (0..).zip(self.0).collect::<Vec<_>>().into_iter().filter(|(_, blocks)| *blocks > 0)
    }

    /// Returns the mean absolute difference from `tokens`.
    pub fn off(&self, tokens: u64) -> f64 {
        let off: u64 = self.present().map(|(other, blocks)| other.abs_diff(tokens) * blocks).sum();
        off as f64 / self.blocks().max(1) as f64
    }

    /// Returns the largest absolute difference from `tokens`.
    pub fn worst(&self, tokens: u64) -> u64 {
        self.present().map(|(other, _)| other.abs_diff(tokens)).max().unwrap_or(0)
    }

    fn blocks(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the statistics of the histogram. If two numbers are equally frequent, the smaller one is the usual one.
    pub fn tokens(&self) -> BlockTokenStats {
        let blocks = self.blocks().max(1) as f64;
        // `max_by_key` returns the last of equal elements, so it runs from the largest number down.
        let usual = self.present().rev().max_by_key(|(_, blocks)| *blocks).map_or(0, |(tokens, _)| tokens);
        let sum: u64 = self.present().map(|(tokens, blocks)| tokens * blocks).sum();
        BlockTokenStats {
            mean: sum as f64 / blocks,
            min: self.present().next().map_or(0, |(tokens, _)| tokens),
            max: self.present().next_back().map_or(0, |(tokens, _)| tokens),
            usual,
            off_share: (self.blocks() - self.0[usual as usize]) as f64 / blocks,
            off_tokens_per_block: self.off(usual),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_say_what_was_counted() {
        let mut histogram = Histogram::EMPTY;
        [22, 22, 23, 23, 25, 99].into_iter().for_each(|tokens| histogram.count(tokens));
        let tokens = histogram.tokens();
        assert_eq!((tokens.min, tokens.max, tokens.usual), (22, 63, 22));
        assert!((tokens.mean - 178.0 / 6.0).abs() < 1e-12 && (tokens.off_share - 4.0 / 6.0).abs() < 1e-12);
        assert_eq!((histogram.off(22), histogram.worst(23)), ((1.0 + 1.0 + 3.0 + 41.0) / 6.0, 40));
        assert_eq!(Histogram::EMPTY.tokens().usual, 0);
    }
}
