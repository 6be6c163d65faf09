//! Blocks that show what goes wrong.

use serde::{Deserialize, Serialize};

use super::block::BlockVerdict;

/// Examples of each kind of fault that a report holds.
pub(super) const EXAMPLES: usize = 5;

/// A faulty block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultyBlock {
    /// The file.
    pub file: String,
    /// Where in it.
    pub record: String,
    /// The text between the brackets.
    pub block: String,
    /// What is wrong.
    pub fault: BlockFault,
}

/// What is wrong with a block, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockFault {
    /// It holds a letter.
    Letters,
    /// It is not exactly three numbers.
    Junk,
    /// Digits are missing.
    Truncated,
    /// It has digits that the format does not have.
    Invented,
}

impl BlockFault {
    /// As reports have it.
    pub fn name(self) -> &'static str {
        match self {
            BlockFault::Letters => "letters",
            BlockFault::Junk => "junk",
            BlockFault::Truncated => "truncated",
            BlockFault::Invented => "invented",
        }
    }

    /// The worst fault of a block.
    pub(super) fn worst(verdict: &BlockVerdict) -> Option<Self> {
        // In the order of [`BlockFault`]: letters are junk as well, and junk may lack digits.
        let faults = [
            (verdict.junk_letters, BlockFault::Letters),
            (verdict.junk_strict, BlockFault::Junk),
            (verdict.truncated == Some(true), BlockFault::Truncated),
            (verdict.invented, BlockFault::Invented),
        ];
        faults.into_iter().find(|(found, _)| *found).map(|(_, fault)| fault)
    }
}

/// Keeps an example if there are few of its kind.
pub(super) fn keep(examples: &mut Vec<FaultyBlock>, example: FaultyBlock) {
    if examples.iter().filter(|known| known.fault == example.fault).count() < EXAMPLES {
        examples.push(example);
    }
}
