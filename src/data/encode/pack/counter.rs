//! Counts tokens.

use drift_core::{Result, Tokenizer};

/// Counts the tokens of whole units.
#[derive(Clone, Copy)]
pub(super) struct Counter<'p> {
    tokenizer: &'p Tokenizer,
    /// The most tokens of a unit.
    pub most: usize,
    /// What stands between two texts.
    pub separator: &'p str,
    /// About how many tokens a separator adds.
    pub separator_tokens: usize,
    /// How many tokens the post-processor adds to a text.
    pub specials: usize,
}

impl<'p> Counter<'p> {
    pub(super) fn new(tokenizer: &'p Tokenizer, most: usize, separator: &'p str) -> Result<Self> {
        let separator_tokens = tokenizer.ids(separator)?.len();
        let specials = tokenizer.whole_count("")?;
        Ok(Counter { tokenizer, most, separator, separator_tokens, specials })
    }

    pub(super) fn count(self, text: &str) -> Result<usize> {
        self.tokenizer.whole_count(text)
    }
}
