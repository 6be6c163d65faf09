//! What the design spaces of both dialects have in common: the base that costs are counted on top of, and what is found.

use super::cuts::Scheme;

/// Pieces with more strings, and so schemes with more new tokens, are not considered.
pub const MAX_NEW_TOKENS: u64 = 40_000;

/// The cost of what cannot be added.
pub(super) const FORBIDDEN: u64 = 1 << 40;

/// What the search needs of a base vocabulary.
pub trait BaseTokens {
    /// Whether a string is a token already.
    fn holds(&self, string: &str) -> bool;
    /// Whether a new token of this text could change how texts without blocks are encoded.
    fn may_not_be_added(&self, string: &str) -> bool;
}

/// The least number of new tokens of any scheme in a space, and a scheme that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Optimum {
    /// The scheme.
    pub scheme: Scheme,
    /// New tokens.
    pub new_tokens: u64,
}
