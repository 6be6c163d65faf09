//! Ways to make a tokenizer, side by side on one corpus.

use serde::Serialize;

use crate::design::measured::histogram::BlockTokenStats;

/// A way to make a tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingMethod {
    /// The base as it is.
    Base,
    /// A scheme of the design space.
    Designed,
    /// Continued BPE as published (arXiv 2512.03989): the base's splits, merges that act everywhere.
    Continued,
    /// Continued BPE with every block as one word.
    ContinuedInBlocks,
    /// Continued BPE in the pieces of a scheme: `--merges`.
    Merges,
    /// The trainer of `tokenizers` from nothing, with GPT-2's splits.
    Plain,
    /// The trainer of `tokenizers` from nothing, in the pieces of a scheme: `--vocab-size`.
    VocabSize,
}

/// One way under the corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodRow {
    /// How it was made.
    pub method: TrainingMethod,
    /// Tokens that the base does not have; from nothing: tokens beside the 256 bytes and the tags.
    pub new_tokens: u64,
    /// Of them, those that hold two digits or more.
    pub multi_digit: u64,
    /// Of them, those that no text of the corpus takes.
    pub unused: u64,
    /// Tokens of the corpus's blocks, all of them.
    pub blocks: BlockTokenStats,
    /// Mean tokens of a conformer's text, with its tags.
    pub tokens_per_conformer: f64,
    /// Share of blocks in the range that it is made for, if it is made for one.
    pub coverage: Option<f64>,
    /// The largest difference between the tokens of two blocks of the range, if that is known of every block.
    pub spread: Option<u64>,
    /// No tokenizer does with fewer new tokens if every block of the range takes at most as many tokens as here; known
    /// where the tokens of every block are.
    pub lower_bound: Option<u64>,
    /// `new_tokens` less `lower_bound`.
    pub gap: Option<u64>,
    /// Texts without blocks that take other tokens than with the base; none for tokenizers without a base.
    pub other_texts_changed: Option<u64>,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodComparison {
    /// How many tokens each way was given.
    pub new_tokens: u64,
    /// Texts without blocks that were encoded.
    pub other_texts: u64,
    /// The ways.
    pub rows: Vec<MethodRow>,
}
