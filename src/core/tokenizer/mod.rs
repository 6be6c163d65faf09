//! Tokenizers: loading, exact token counts in context, COPY and FREE.
//!
//! A token is [`TokenRole::Free`] if all its characters lie between the `<` and the `>` of a block, and [`TokenRole::Copy`]
//! otherwise. Tokens are counted *in context*, over the whole text: the closing `>` merges with the text behind it (`>[`) and the
//! opening `<` with the text before it (`]<`), so a block alone would have other tokens.
//!
//! - [`Tokenizer`] wraps a Hugging Face tokenizer. [`Tokenizer::tokens`] is the reference: `encode` with offsets.
//! - [`Counter`] counts the FREE tokens of each block. It uses [`tables`] that are learned from the tokenizer and checked against
//!   the reference, or the reference itself if the tables cannot be proved.

mod answer;
mod block_tokens;
pub mod boundaries;
mod byte_pairs;
mod canonical;
mod characters;
mod chunk;
mod companions;
mod counter;
mod encoder_product;
mod encoder_shapes;
mod expressions;
mod factors;
mod fixed_text;
mod inspect;
mod isolation;
pub mod learn;
mod load;
mod normalizer;
mod panics;
mod parts;
mod pieces;
mod product;
mod scores;
mod slot_tokens;
mod special;
mod special_tokens;
mod spellings;
pub mod tables;
mod tokenizer_file;
mod words;
mod writable;

pub(crate) use answer::SOME_PROMPT;
pub use block_tokens::{BlockTokens, MAX_BLOCK_TOKENS};
pub(crate) use byte_pairs::BytePairs;
pub use characters::CharacterKind;
pub(crate) use chunk::Chunk;
pub use companions::ADDED_TOKENS_DECODER;
pub use counter::{BUILT_IN_SKELETONS, Counter, Method};
pub use encoder_product::EncoderProduct;
pub(crate) use fixed_text::FixedText;
pub use inspect::{InspectedBlock, InspectedText, Inspector};
pub use isolation::Isolation;
pub use load::{EMBEDDED, EXTENDED, EmbeddedTokenizer, InBlocks, Tokenizer};
pub use normalizer::marks_spaces;
pub use parts::TextPart;
pub(crate) use pieces::Surroundings;
pub(crate) use product::ChunkState;
pub(crate) use slot_tokens::{AMBIGUOUS, SlotMode, SlotTokens, plain_inside};
pub use special::{NamedToken, config_beside, encoding_beside, end_beside, ends_of_text};
pub(crate) use spellings::TokenSpellings;

use serde::Serialize;

use crate::encoding::Encoding;

/// The treatment of a token by a position template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenRole {
    /// All characters lie strictly inside a block: the model chooses.
    Free,
    /// Anything else: the template forces it.
    Copy,
}

/// A token of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Token {
    /// Vocabulary id.
    pub id: u32,
    /// The text that it covers.
    pub text: String,
    /// COPY or FREE.
    pub class: TokenRole,
    /// The offset of its first byte.
    #[serde(skip)]
    pub start: usize,
    /// The offset behind its last byte.
    #[serde(skip)]
    pub end: usize,
}

/// Returns the byte ranges strictly between `<` and `>`, in order. An unclosed `<` opens no block.
pub fn block_ranges(text: &str) -> Vec<std::ops::Range<usize>> {
    Encoding::FIXED.slot_ranges(text)
}
