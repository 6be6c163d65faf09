//! Which blocks of a corpus each grammar has.

use crate::design::scheme::grammar::{Decimals, Grammar, MAX_DECIMALS};
use crate::text::Fixed;
use crate::text::number::{UNITS_PER_ANGSTROM, decimals_stripped};

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
        let integer = |number: &Fixed| (number.unsigned_abs() / UNITS_PER_ANGSTROM.unsigned_abs()) as usize;
        let largest = numbers.iter().map(integer).max().unwrap_or(0).min(BEYOND);
        let dropped =
            numbers.iter().map(|number| decimals_stripped(number.unsigned_abs())).max().unwrap_or(0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::slots::Range;

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
