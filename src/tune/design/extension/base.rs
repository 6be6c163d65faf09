//! The vocabulary of a base, as needed by the search for schemes.

use std::cell::RefCell;
use std::collections::HashMap;

use super::layout::Alphabet;
use crate::design::scheme::space::BaseTokens;
use drift_core::tokenizer::Tokenizer;

/// The vocabulary of a base.
pub(in crate::design) struct BaseVocabulary<'t> {
    tokenizer: &'t Tokenizer,
    alphabet: Alphabet,
    pub(in crate::design) tokens: HashMap<String, u32>,
    /// For strings with every digit replaced by 0: whether the pre-tokenizer returns the string as one piece.
    masks: RefCell<HashMap<String, bool>>,
}

impl<'t> BaseVocabulary<'t> {
    pub(in crate::design) fn of(tokenizer: &'t Tokenizer, alphabet: Alphabet) -> Self {
        BaseVocabulary { tokenizer, alphabet, tokens: tokenizer.vocabulary(), masks: RefCell::default() }
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
        // A guard keeps new tokens out of texts that are not blocks, so any string may be added.
        if self.alphabet == Alphabet::Text {
            return false;
        }
        let mask = string.replace(|c: char| c.is_ascii_digit(), "0");
        if let Some(known) = self.masks.borrow().get(&mask) {
            return *known;
        }
        // If the pre-tokenizer fails here, the later checks fail too.
        let whole = self.tokenizer.pre_tokens(&mask).is_ok_and(|pieces| pieces.len() == 1);
        self.masks.borrow_mut().insert(mask, whole);
        whole
    }
}
