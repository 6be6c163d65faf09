//! What the two design spaces share: the base on top of which costs are counted, and the result.

use super::cuts::Scheme;

/// The largest number of strings of a piece, and so of new tokens of a scheme, that is considered.
pub const MAX_NEW_TOKENS: u64 = 40_000;

/// The cost of a string that cannot be added.
pub(super) const FORBIDDEN: u64 = 1 << 40;

/// What the search needs to know about a base vocabulary.
pub trait BaseTokens {
    /// Whether a string already is a token.
    fn holds(&self, string: &str) -> bool;
    /// Whether a new token with this text could change how texts without blocks are encoded.
    fn may_not_be_added(&self, string: &str) -> bool;
    /// The strings of a scheme that are no tokens, in the scheme's order.
    fn lacks(&self, scheme: &Scheme) -> Vec<String> {
        scheme.strings().into_iter().filter(|string| !self.holds(string)).collect()
    }
}

/// The smallest number of new tokens of any scheme in a space, and a scheme that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Optimum {
    /// The scheme.
    pub scheme: Scheme,
    /// The number of new tokens.
    pub new_tokens: u64,
}

/// A base for tests that has these tokens.
#[cfg(test)]
pub(super) struct Known(pub &'static [&'static str]);

#[cfg(test)]
impl BaseTokens for Known {
    fn holds(&self, string: &str) -> bool {
        self.0.contains(&string)
    }

    fn may_not_be_added(&self, string: &str) -> bool {
        string == "<-"
    }
}
