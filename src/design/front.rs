//! The front of new tokens and tokens a block, and which blocks of a corpus each of its points covers.
//!
//! Its points come from the search of the design space alone. Only the one that is written is checked number by number.

use serde::Serialize;

use super::designs::Designs;
use super::grammar::{Decimals, Grammar, MAX_DECIMALS};
use super::measure::{BlockTokens, Histogram};
use super::scheme::{Kind, Range};
use super::space::{MAX_NEW_TOKENS, Vocabulary};
use crate::error::Result;
use crate::job::Job;
use crate::text::{Dialect, Fixed, Precision};

/// Ranges beside that of the plan, in Å.
const RANGES: [u32; 2] = [10, 20];

/// Tokens a block that are looked at.
const TOKENS: std::ops::RangeInclusive<usize> = 5..=13;

/// Designs of which no other of the same kind and range has both fewer new tokens and fewer tokens a block, beside the
/// tokenizers that there are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Front {
    /// Designs, by kind, range and tokens a block. Under each of them drift is 0 in its range.
    pub designs: Vec<DesignPoint>,
    /// The base, and what was made of it.
    pub tokenizers: Vec<TokenizerPoint>,
}

/// A design.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignPoint {
    /// Which tokens it may have.
    pub kind: Kind,
    /// Its blocks are of numbers below this magnitude.
    pub range_angstrom: Range,
    /// The fewest decimals of these numbers.
    pub fewest_decimals: u64,
    /// Tokens of each of these blocks, brackets included.
    pub tokens_per_block: u64,
    /// Tokens that it adds to the base.
    pub new_tokens: u64,
    /// Share of the corpus's blocks that are among these, 0 to 1.
    pub coverage: f64,
    /// Whether this is the design that was checked and written.
    pub written: bool,
}

/// A tokenizer on the corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenizerPoint {
    /// Its name.
    pub name: String,
    /// Tokens that it has more than the base.
    pub new_tokens: u64,
    /// Mean tokens of a block in the range, brackets included.
    pub tokens_per_block: f64,
    /// Most less fewest tokens of a block in the range.
    pub drift: u64,
}

impl TokenizerPoint {
    /// Of the blocks in the range.
    pub fn of(name: &str, new_tokens: u64, inside: &Histogram) -> Self {
        let BlockTokens { mean, min, max, .. } = inside.tokens();
        TokenizerPoint { name: name.to_owned(), new_tokens, tokens_per_block: mean, drift: max - min }
    }
}

/// Blocks of a corpus by the integer part of their largest number and the fewest decimals of a number.
#[derive(Debug, Clone)]
pub struct Reach(Vec<[u64; MAX_DECIMALS + 1]>);

/// Integer parts from here on are in no range.
const BEYOND: usize = 100;

impl Default for Reach {
    fn default() -> Self {
        Reach(vec![[0; MAX_DECIMALS + 1]; BEYOND + 1])
    }
}

impl Reach {
    /// Adds a block.
    pub fn add(&mut self, numbers: &[Fixed; 3]) {
        let integer = |number: &Fixed| {
            (number.unsigned_abs() / Precision::FOUR.units_per_angstrom().unsigned_abs()) as usize
        };
        let largest = numbers.iter().map(integer).max().unwrap_or(0).min(BEYOND);
        let dropped = numbers
            .iter()
            .map(|number| Precision::FOUR.trailing_zeros(number.unsigned_abs()))
            .max()
            .unwrap_or(0);
        self.0[largest][MAX_DECIMALS - dropped] += 1;
    }

    /// The share of blocks that a grammar has.
    pub fn share(&self, grammar: Grammar) -> f64 {
        let fewest = match grammar.decimals {
            Decimals::Four => 0,
            Decimals::From(fewest) => fewest,
        };
        let sum = |rows: &[[u64; MAX_DECIMALS + 1]], from: usize| -> u64 {
            rows.iter().flat_map(|row| &row[from..]).sum()
        };
        let covered = sum(&self.0[..grammar.range.angstrom() as usize], fewest);
        covered as f64 / sum(&self.0, 0).max(1) as f64
    }
}

/// The designs of the front, for both kinds and some ranges.
///
/// # Errors
/// If the job was cancelled.
pub fn designs<V: Vocabulary>(
    range: Range,
    (dialect, fewest_decimals): (Dialect, Option<usize>),
    vocabulary: &V,
    reach: &Reach,
    written: (Kind, usize),
    job: &Job,
) -> Result<Vec<DesignPoint>> {
    let mut ranges: Vec<u32> = RANGES.into_iter().chain([range.angstrom()]).collect();
    ranges.sort_unstable();
    ranges.dedup();
    let mut points = Vec::new();
    for kind in [Kind::Separate, Kind::Fused] {
        for &angstrom in &ranges {
            let here = Range::new(angstrom)?;
            let space = Designs::new(kind, here, (dialect, fewest_decimals), vocabulary)?;
            let mut least = u64::MAX;
            for tokens in TOKENS.filter(|tokens| space.tokens().contains(tokens)) {
                job.check()?;
                let written = here == range && written == (kind, tokens);
                let limit =
                    if written { MAX_NEW_TOKENS } else { MAX_NEW_TOKENS.min(least.saturating_sub(1)) };
                let Some(optimum) = space.optimum(tokens, limit) else { continue };
                least = least.min(optimum.new_tokens);
                let grammar = space.grammar(tokens);
                points.push(DesignPoint {
                    kind,
                    range_angstrom: here,
                    fewest_decimals: grammar.fewest_decimals() as u64,
                    tokens_per_block: tokens as u64,
                    new_tokens: optimum.new_tokens,
                    coverage: reach.share(grammar),
                    written,
                });
            }
        }
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_counts_blocks_by_range_and_decimals() {
        let mut reach = Reach::default();
        for numbers in [[1, 25_000, -99_999], [100_000, 1, 1], [10_000, 1, 1], [-2_000_000, 5, 5]] {
            reach.add(&numbers);
        }
        let range = |angstrom| Range::new(angstrom).unwrap();
        assert_eq!(reach.share(Grammar::fixed(range(10))), 0.5);
        assert_eq!(reach.share(Grammar::fixed(range(11))), 0.75);
        assert_eq!(reach.share(Grammar::fixed(range(100))), 0.75);
        let stripped = |fewest| reach.share(Grammar::stripped(range(11), fewest).unwrap());
        assert_eq!([stripped(0), stripped(1), stripped(2)], [0.75, 0.25, 0.0]);
    }
}
