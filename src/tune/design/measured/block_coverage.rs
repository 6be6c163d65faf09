//! Counts which blocks of a corpus each grammar includes.

use crate::design::scheme::grammar::Grammar;
use crate::design::scheme::slots::MOST_DECIMALS;
use drift_core::encoding::Fixed;

/// Counts of a corpus's blocks by the integer part of their largest number and the smallest number of decimals.
#[derive(Debug, Clone)]
pub struct BlockCoverage {
    grammar: Grammar,
    blocks: Vec<[u64; MOST_DECIMALS + 1]>,
}

/// Integer parts from this value on are in no range.
const BEYOND: usize = 100;

impl BlockCoverage {
    /// Counts without blocks, for numbers with the decimals of this grammar.
    pub(crate) fn from_grammar(grammar: Grammar) -> Self {
        BlockCoverage { grammar, blocks: vec![[0; MOST_DECIMALS + 1]; BEYOND + 1] }
    }

    /// Adds a block.
    pub fn add(&mut self, numbers: &[Fixed; 3]) {
        if self.grammar.decimal_range().is_none() {
            // Every grammar of such an encoding includes every block, so it does not matter where a block is counted.
            self.blocks[0][0] += 1;
            return;
        }
        let units = self.grammar.units();
        let integer = |number: &Fixed| (number.unsigned_abs() / units) as usize;
        // A block is in a range if its largest number is.
        let largest = numbers.iter().map(integer).max().unwrap_or(0).min(BEYOND);
        let decimals = |number: &Fixed| self.grammar.decimals_of(number.unsigned_abs());
        let fewest = numbers.iter().map(decimals).min().unwrap_or(0);
        self.blocks[largest][fewest] += 1;
    }

    /// Returns the share of blocks that a grammar includes, 0 to 1.
    pub fn share(&self, grammar: Grammar) -> f64 {
        if grammar.decimal_range().is_none() {
            // Such an encoding writes all blocks, those outside its range as tails.
            return 1.0;
        }
        // The fixed encoding also writes trailing zeros.
        let fewest = if grammar.is_stripped() { grammar.fewest_decimals() } else { 0 };
        let inside = &self.blocks[..grammar.range.angstrom() as usize];
        let covered: u64 = inside.iter().flat_map(|row| &row[fewest..]).sum();
        covered as f64 / self.blocks.iter().flatten().sum::<u64>().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::{fixed_grammar, stripped_grammar};

    #[test]
    fn coverage_counts_blocks_by_range_and_decimals() {
        let mut reach = BlockCoverage::from_grammar(fixed_grammar(15, 4));
        for numbers in [[1, 25_000, -99_999], [100_000, 1, 1], [10_000, 1, 1], [-2_000_000, 5, 5]] {
            reach.add(&numbers);
        }
        assert_eq!(reach.share(fixed_grammar(10, 4)), 0.5);
        assert_eq!(reach.share(fixed_grammar(11, 4)), 0.75);
        assert_eq!(reach.share(fixed_grammar(100, 4)), 0.75);
        let stripped = |fewest| reach.share(stripped_grammar(11, 4, fewest));
        assert_eq!([stripped(0), stripped(1), stripped(2)], [0.75, 0.25, 0.0]);
    }

    #[test]
    fn three_decimals_are_counted_in_their_own_units() {
        let mut reach = BlockCoverage::from_grammar(fixed_grammar(15, 3));
        for numbers in [[1, 2_500, -9_999], [10_000, 1, 1], [1_230, 4_500, 1]] {
            reach.add(&numbers);
        }
        assert_eq!(reach.share(fixed_grammar(10, 3)), 2.0 / 3.0);
        let stripped = |fewest| reach.share(stripped_grammar(10, 3, fewest));
        assert_eq!([stripped(0), stripped(1), stripped(2)], [2.0 / 3.0, 2.0 / 3.0, 0.0]);
    }
}
