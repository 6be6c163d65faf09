//! The front of new tokens and tokens a block, beside the tokenizers that there are.

use serde::Serialize;

use crate::design::measured::histogram::{BlockTokenStats, Histogram};
use crate::design::scheme::cuts::SchemeKind;
use crate::design::scheme::slots::Range;

/// Designs of which no other of the same kind and range has both fewer new tokens and fewer tokens a block, beside the
/// tokenizers that there are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParetoFront {
    /// Designs, by kind, range and tokens a block. Under each of them drift is 0 in its range.
    pub designs: Vec<DesignPoint>,
    /// The base, and what was made of it.
    pub tokenizers: Vec<TokenizerPoint>,
}

/// A design.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignPoint {
    /// Which tokens it may have.
    pub kind: SchemeKind,
    /// Its blocks are of numbers below this magnitude, if these are decimals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_angstrom: Option<Range>,
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
    pub fn new(name: &str, new_tokens: u64, inside: &Histogram) -> Self {
        let BlockTokenStats { mean, min, max, .. } = inside.tokens();
        TokenizerPoint { name: name.to_owned(), new_tokens, tokens_per_block: mean, drift: max - min }
    }
}
