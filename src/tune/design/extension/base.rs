//! The vocabulary of a base, as the search for schemes sees it.

use std::cell::RefCell;
use std::collections::HashMap;

use super::layout::Alphabet;
use crate::design::scheme::space::BaseTokens;
use drift_core::tokenizer::Tokenizer;

/// A base's vocabulary.
pub(in crate::design) struct BaseVocabulary<'t> {
    tokenizer: &'t Tokenizer,
    alphabet: Alphabet,
    pub(in crate::design) tokens: HashMap<String, u32>,
    /// Whether strings that are equal but for their digits come out of the pre-tokenizer as one piece.
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
        // A guard keeps any text out of what is no block.
        if self.alphabet == Alphabet::Text {
            return false;
        }
        let mask = string.replace(|c: char| c.is_ascii_digit(), "0");
        if let Some(known) = self.masks.borrow().get(&mask) {
            return *known;
        }
        // A pre-tokenizer that fails here fails the checks too.
        let whole = self.tokenizer.pre_tokens(&mask).is_ok_and(|pieces| pieces.len() == 1);
        self.masks.borrow_mut().insert(mask, whole);
        whole
    }
}
