//! The test subsets of the other corpus, which a column names.

use std::sync::Arc;

use super::kind::SubsetBits;

/// The most test subsets that are told apart.
const MOST: usize = SubsetBits::BITS as usize - 1;

/// The values of the column `test_subset`, numbered as they come.
#[derive(Debug, Default)]
pub(super) struct Subsets {
    names: Vec<Arc<str>>,
    /// Whether there are too many, so that none are told apart.
    is_overfull: bool,
}

impl Subsets {
    /// Returns the number of a subset; the empty name stands for rows without one.
    pub(super) fn number(&mut self, name: &str) -> u8 {
        let found = self.names.iter().position(|known| &**known == name);
        let at = found.unwrap_or(self.names.len());
        if at == MOST {
            self.is_overfull = true;
        } else if found.is_none() {
            self.names.push(name.into());
        }
        // Fewer than 63, or unused because there are too many.
        at.min(MOST - 1) as u8
    }

    /// Returns the bit by which the conformers of a subset were added; no bit if there are none.
    pub(super) fn named(&self, name: &str) -> SubsetBits {
        let found = self.names.iter().position(|known| &**known == name);
        found.or(self.is_overfull.then_some(MOST - 1)).map_or(0, |number| 1 << number)
    }

    /// Returns the subset with a number, as a bit.
    pub(super) fn bit(&self, number: u8) -> SubsetBits {
        if self.is_overfull { 1 } else { 1 << number }
    }

    /// Returns all these subsets, as bits.
    pub(super) fn told_apart(&self, bits: SubsetBits) -> SubsetBits {
        if self.is_overfull { SubsetBits::from(bits != 0) } else { bits }
    }

    /// Returns the names by number. A single empty name if they are not told apart.
    pub(super) fn names(&self) -> Vec<String> {
        if self.is_overfull {
            return vec![String::new()];
        }
        self.names.iter().map(|name| name.to_string()).collect()
    }

    /// Returns whether there are more subsets than can be told apart.
    pub(super) fn is_overfull(&self) -> bool {
        self.is_overfull
    }
}
