//! Examples of faulty blocks.

use serde::{Deserialize, Serialize};

use super::block::BlockVerdict;

/// The largest number of examples of each kind of fault in a report.
pub(super) const EXAMPLES: usize = 5;

/// A faulty block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultyBlock {
    /// The file.
    pub file: String,
    /// The record in the file.
    pub record: String,
    /// The text between the brackets.
    pub block: String,
    /// Its worst fault.
    pub fault: BlockFault,
}

/// The faults of a block, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockFault {
    /// It contains a letter.
    Letters,
    /// It is not exactly three numbers.
    Junk,
    /// Digits are missing.
    Truncated,
    /// It has digits that the format does not allow.
    Invented,
}

drift_core::named!(BlockFault {
    Letters: "letters",
    Junk: "junk",
    Truncated: "truncated",
    Invented: "invented"
});

impl BlockFault {
    /// Returns the worst fault of a block, if it has any.
    pub(super) fn worst(verdict: &BlockVerdict) -> Option<Self> {
        // In the order of [`BlockFault`]: letters are junk too, and junk may lack digits.
        let faults = [
            (verdict.junk_letters, BlockFault::Letters),
            (verdict.junk_strict, BlockFault::Junk),
            (verdict.truncated == Some(true), BlockFault::Truncated),
            (verdict.invented, BlockFault::Invented),
        ];
        faults.into_iter().find(|(found, _)| *found).map(|(_, fault)| fault)
    }
}

/// Keeps an example unless there are enough of its kind.
pub(super) fn keep(examples: &mut Vec<FaultyBlock>, example: FaultyBlock) {
    if examples.iter().filter(|known| known.fault == example.fault).count() < EXAMPLES {
        examples.push(example);
    }
}
