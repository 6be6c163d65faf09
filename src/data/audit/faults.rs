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
    pub fault: Fault,
}

/// What is wrong with a block, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// It holds a letter.
    Letters,
    /// It is not exactly three numbers.
    Junk,
    /// Digits are missing.
    Truncated,
    /// It has digits that the format does not have.
    Invented,
}

impl Fault {
    /// As reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Letters => "letters",
            Fault::Junk => "junk",
            Fault::Truncated => "truncated",
            Fault::Invented => "invented",
        }
    }

    /// The worst fault of a block.
    pub(super) fn worst(verdict: &BlockVerdict) -> Option<Self> {
        // In the order of [`Fault`]: letters are junk as well, and junk may lack digits.
        let faults = [
            (verdict.junk_letters, Fault::Letters),
            (verdict.junk_strict, Fault::Junk),
            (verdict.truncated == Some(true), Fault::Truncated),
            (verdict.invented, Fault::Invented),
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
