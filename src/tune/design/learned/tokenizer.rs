//! A tokenizer learned from a corpus, with or without a base.

use crate::design::extension::numbers::Pieces;
use crate::design::scheme::counting_bound::BlockGuarantee;
use crate::design::scheme::cuts::Scheme;
use drift_core::Tokenizer;

/// A tokenizer with merges learned within blocks.
pub struct LearnedTokenizer {
    /// The scheme that cuts blocks before merges apply.
    pub scheme: Scheme,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The bytes of its JSON.
    pub json: Vec<u8>,
    /// The new tokens in order of their ids: those added to the base, or all that are neither special nor single bytes.
    pub new_tokens: Vec<(u32, String)>,
    /// The number of new tokens that are made by merges.
    pub merges: u64,
    /// The number of texts that were banned from becoming tokens.
    pub replaced: u64,
    /// What is proved for every block in the range.
    pub proved: BlockGuarantee,
    /// The ids to which each piece of the scheme is encoded.
    pub(in crate::design) pieces: Pieces,
}
