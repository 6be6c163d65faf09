//! What every check of an extended tokenizer needs: both tokenizers, the scheme, and the error for a broken guarantee.

use std::borrow::Cow;
use std::ops::Deref;

use super::layout::Alphabet;
use crate::design::scheme::blocks::{block, numbers};
use crate::design::scheme::cuts::Scheme;
use crate::design::scheme::grammar::Grammar;
use drift_core::text::CONFORMER_OPEN;
use drift_core::{Error, Result, Tokenizer};

/// What the new tokens are for: the blocks of a grammar, or numbers between white space.
pub(in crate::design) trait Isolated: Sync {
    /// Returns a text in which nothing is isolated, made of this one.
    ///
    /// # Errors
    /// If a pre-tokenizer refuses the text.
    fn taken_apart(&self, text: &str) -> Result<String>;
}

impl Isolated for Grammar {
    fn taken_apart(&self, text: &str) -> Result<String> {
        Ok(self.without_blocks(text))
    }
}

/// An extended tokenizer and its base. A tokenizer from scratch is its own base.
pub(in crate::design) struct TokenizerPair<'t> {
    pub(in crate::design) base: &'t Tokenizer,
    pub(in crate::design) extended: &'t Tokenizer,
    pub(in crate::design) isolated: &'t dyn Isolated,
    pub(in crate::design) contexts: &'static [&'static str],
    pub(in crate::design) alphabet: Alphabet,
}

/// A pair with the scheme of its blocks.
pub(in crate::design) struct Checker<'t> {
    pub(in crate::design) pair: TokenizerPair<'t>,
    pub(in crate::design) scheme: &'t Scheme,
}

impl<'t> Deref for Checker<'t> {
    type Target = TokenizerPair<'t>;

    fn deref(&self) -> &TokenizerPair<'t> {
        &self.pair
    }
}

impl Checker<'_> {
    /// Any block of the range.
    pub(super) fn some_block(&self) -> String {
        block(self.scheme.grammar, &numbers(self.scheme.grammar, 0)).0
    }

    /// Extends a text, if needed, such that a block may follow: after an atom, if blocks have no opening character.
    pub(super) fn up_to_a_block<'c>(&self, text: &'c str) -> Cow<'c, str> {
        // The tag that opens an answer also ends with `]`, but is not an atom.
        let behind_atom = text.ends_with(']') && !text.ends_with(CONFORMER_OPEN);
        if self.scheme.grammar.encoding().open().is_empty() && !behind_atom {
            return format!("{text}[C]").into();
        }
        text.into()
    }
}

impl TokenizerPair<'_> {
    pub(in crate::design) fn broken(&self, promise: &str) -> Error {
        let problem = format!("this base cannot be extended: {promise}");
        Error::input(&self.base.name, problem, "nothing was written")
    }

    /// Returns the ids of a text, which must equal the base's ids.
    pub(in crate::design) fn same_ids(&self, text: &str) -> Result<Vec<u32>> {
        let ids = self.extended.ids(text)?;
        if ids == self.base.ids(text)? {
            return Ok(ids);
        }
        let text = drift_core::error::excerpt(text.as_bytes());
        Err(self.broken(&format!("text without a block, {text}, would take other tokens")))
    }

    /// Returns the ids of a text, which must equal the base's ids and lose nothing. A base without a token for a character drops the
    /// character.
    pub(super) fn kept(&self, text: &str) -> Result<Vec<u32>> {
        let ids = self.same_ids(text)?;
        if self.decodes(&ids, text)? {
            Ok(ids)
        } else {
            Err(self.broken(&format!("it loses a part of {text:?}")))
        }
    }

    /// Returns whether ids decode to their text. Bases that mark the beginnings of sections decode a space after each added token; the
    /// extension must do the same.
    pub(in crate::design) fn decodes(&self, ids: &[u32], text: &str) -> Result<bool> {
        let decoded = self.extended.decode(ids)?;
        if decoded == text || self.alphabet == Alphabet::Bytes {
            return Ok(decoded == text);
        }
        // Spaces must be those that the base itself decodes. All other characters must be those of the text.
        let as_before = decoded == self.base.decode(&self.base.ids(text)?)?;
        Ok(as_before && decoded.replace(' ', "") == text.replace(' ', ""))
    }
}
