//! The vocabulary of a base, as needed by the search for schemes.

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::Value;

use super::layout::Alphabet;
use crate::design::scheme::space::BaseTokens;
use drift_core::Tokenizer;

/// A tokenizer to extend.
#[derive(Clone, Copy)]
pub(crate) struct BaseTokenizer<'t> {
    /// The tokenizer.
    pub(crate) tokenizer: &'t Tokenizer,
    /// Its `tokenizer.json`.
    pub(crate) json: &'t Value,
}

/// Counts the pre-tokens of strings. Strings that differ only in their digits are counted once, with zeros as digits.
pub(in crate::design) struct PreTokenCounts<'t> {
    tokenizer: &'t Tokenizer,
    /// By string with zeros as digits.
    known: Mutex<HashMap<String, usize>>,
}

impl<'t> PreTokenCounts<'t> {
    pub(in crate::design) fn of(tokenizer: &'t Tokenizer) -> Self {
        PreTokenCounts { tokenizer, known: Mutex::default() }
    }

    /// Returns the number of pre-tokens of a string; 0 if the pre-tokenizer fails, because later checks fail too.
    pub(in crate::design) fn count(&self, string: &str) -> usize {
        // A poisoned lock means that another thread panicked. One is the safe answer until that panic ends the run: a token that is
        // a pre-token as a whole is not added.
        let Ok(mut known) = self.known.lock() else { return 1 };
        let mask = string.replace(|c: char| c.is_ascii_digit(), "0");
        *known
            .entry(mask)
            .or_insert_with_key(|mask| self.tokenizer.pre_tokens(mask).map_or(0, |pieces| pieces.len()))
    }
}

/// The vocabulary of a base.
pub(in crate::design) struct BaseVocabulary<'t> {
    alphabet: Alphabet,
    tokens: HashMap<String, u32>,
    pre_tokens: PreTokenCounts<'t>,
}

impl<'t> BaseVocabulary<'t> {
    pub(in crate::design) fn of(tokenizer: &'t Tokenizer, alphabet: Alphabet) -> Self {
        let (tokens, pre_tokens) = (tokenizer.vocabulary(), PreTokenCounts::of(tokenizer));
        BaseVocabulary { alphabet, tokens, pre_tokens }
    }

    /// Returns a text as the vocabulary spells it; a character without a token by the token of its byte.
    pub(in crate::design) fn spelled(&self, text: &str) -> String {
        match (self.alphabet, text.as_bytes()) {
            (Alphabet::Bytes, _) => {
                let letter =
                    |c: char| if c <= ' ' { char::from_u32(0x100 + c as u32).unwrap_or(c) } else { c };
                text.chars().map(letter).collect()
            }
            (Alphabet::Text, [byte]) if *byte != b' ' && !self.holds(text) => format!("<0x{byte:02X}>"),
            (Alphabet::Text, _) => text.replace(' ', "\u{2581}"),
        }
    }

    pub(in crate::design) fn texts(&self) -> impl Iterator<Item = &str> + Clone {
        self.tokens.keys().map(String::as_str)
    }
}

impl BaseTokens for BaseVocabulary<'_> {
    fn holds(&self, string: &str) -> bool {
        self.tokens.contains_key(string)
    }

    fn may_not_be_added(&self, string: &str) -> bool {
        // With [`Alphabet::Text`] a guard keeps new tokens out of texts that are not blocks, so any string may be added.
        self.alphabet == Alphabet::Bytes && self.pre_tokens.count(string) == 1
    }
}
