//! The comparison of methods to make a tokenizer, on one corpus.

use serde::Serialize;

use crate::design::measured::histogram::BlockTokenStats;

/// A method to make a tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingMethod {
    /// The unchanged base.
    Base,
    /// A designed extension: a scheme of the design space.
    Designed,
    /// Continued BPE as published (arXiv 2512.03989): the base's splits, with merges that act on every text.
    Continued,
    /// Continued BPE with every block as one word.
    ContinuedInBlocks,
    /// Continued BPE within the pieces of a scheme: `--merges`.
    Merges,
    /// The trainer of `tokenizers` from scratch, with GPT-2's splits.
    Plain,
    /// The trainer of `tokenizers` from scratch, within the pieces of a scheme: `--vocab-size`.
    VocabSize,
}

/// The results of one method on the corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodRow {
    /// The method.
    pub method: TrainingMethod,
    /// The number of tokens that the base does not have. For tokenizers from scratch, the number of tokens besides the 256 bytes
    /// and the tags.
    pub new_tokens: u64,
    /// The number of these tokens with two or more digits.
    pub multi_digit: u64,
    /// The number of these tokens that no text of the corpus uses.
    pub unused: u64,
    /// The number of tokens per block, over all blocks of the corpus.
    pub blocks: BlockTokenStats,
    /// The mean number of tokens of a conformer's text, including its tags.
    pub tokens_per_conformer: f64,
    /// The share of blocks in the range for which the tokenizer is made, if it is made for a range.
    pub coverage: Option<f64>,
    /// The largest difference between the numbers of tokens of two blocks in the range, if it is known for every block.
    pub spread: Option<u64>,
    /// A lower bound: no tokenizer can do with fewer new tokens if every block of the range takes at most as many tokens as with
    /// this one. `None` if the number of tokens is not known for every block.
    pub lower_bound: Option<u64>,
    /// `new_tokens` minus `lower_bound`.
    pub gap: Option<u64>,
    /// The number of texts without blocks whose tokens differ from those of the base; null for tokenizers without a base.
    pub other_texts_changed: Option<u64>,
}

/// A comparison of methods.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodComparison {
    /// The number of tokens that each method was given.
    pub new_tokens: u64,
    /// The number of texts without blocks that were encoded.
    pub other_texts: u64,
    /// One row per method.
    pub rows: Vec<MethodRow>,
}
