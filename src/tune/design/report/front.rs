//! The trade-off front between new tokens and tokens per block, together with actual tokenizers.

use serde::Serialize;

use crate::design::measured::histogram::{BlockTokenStats, Histogram};
use crate::design::scheme::cuts::SchemeKind;
use crate::design::scheme::slots::Range;

/// The designs for which no other design of the same kind and range has both fewer new tokens and fewer tokens per block, together
/// with actual tokenizers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParetoFront {
    /// The designs, by kind, range and tokens per block. Each has drift 0 in its range.
    pub designs: Vec<DesignPoint>,
    /// The base, and the tokenizer made from it.
    pub tokenizers: Vec<TokenizerPoint>,
}

/// A designed extension on the front.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignPoint {
    /// Which tokens it may have.
    pub kind: SchemeKind,
    /// The range: blocks of numbers below this magnitude, in Å; absent if numbers are not decimals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_angstrom: Option<Range>,
    /// The smallest number of decimals of these numbers.
    pub fewest_decimals: u64,
    /// The number of tokens of each of these blocks, including brackets.
    pub tokens_per_block: u64,
    /// The number of tokens that it adds to the base.
    pub new_tokens: u64,
    /// The share of the corpus's blocks that it covers, 0 to 1.
    pub coverage: f64,
    /// Whether this design was checked and written.
    pub written: bool,
}

/// The results of a tokenizer on the corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenizerPoint {
    /// Its name.
    pub name: String,
    /// The number of tokens that it has in addition to the base's.
    pub new_tokens: u64,
    /// The mean number of tokens of a block in the range, including brackets.
    pub tokens_per_block: f64,
    /// The maximum minus the minimum number of tokens of a block in the range.
    pub drift: u64,
}

impl TokenizerPoint {
    /// Returns the point of a tokenizer; `inside` counts the tokens of blocks in the range.
    pub fn new(name: &str, new_tokens: u64, inside: &Histogram) -> Self {
        let BlockTokenStats { mean, min, max, .. } = inside.tokens();
        TokenizerPoint { name: name.to_owned(), new_tokens, tokens_per_block: mean, drift: max - min }
    }
}
