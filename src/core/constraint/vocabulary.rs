//! Sets of token ids for logit processors. They depend only on the strings of the vocabulary.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::text::{CONFORMER_CLOSE, CONFORMER_OPEN, SMILES_CLOSE, SMILES_OPEN};
use crate::tokenizer::Tokenizer;

/// The characters of a block.
const NUMBER_CHARACTERS: &str = "0123456789.,-";

/// Pairs of characters that occur in no block.
const MALFORMED: [&str; 7] = ["..", "--", ",,", ".,", ",.", ".-", "-,"];

/// The strings of a vocabulary, added tokens included, sorted by id.
pub struct Vocabulary {
    tokens: Vec<(u32, String)>,
}

impl Vocabulary {
    /// Returns the vocabulary of a tokenizer. Strings are in the alphabet of its model, in which ASCII stands for itself.
    pub fn from_tokenizer(tokenizer: &Tokenizer) -> Self {
        let mut tokens: Vec<(u32, String)> =
            tokenizer.vocabulary().into_iter().map(|(token, id)| (id, token)).collect();
        // Sorted by id: masks are sorted lists, and a hash map has no order.
        tokens.sort_unstable();
        Vocabulary { tokens }
    }

    /// Returns the sorted ids of tokens for which `keep` holds.
    pub fn ids(&self, keep: impl Fn(&str) -> bool) -> Vec<u32> {
        let mut ids: Vec<u32> =
            self.tokens.iter().filter(|(_, token)| keep(token)).map(|(id, _)| *id).collect();
        ids.dedup();
        ids
    }

    /// Returns the ids of tokens that contain one of `characters`.
    pub fn holding(&self, characters: &[char]) -> Vec<u32> {
        self.ids(|token| token.contains(characters))
    }
}

/// The tokens that consist only of characters of a block, with their texts.
pub(crate) struct NumberTokens {
    /// Sorted.
    ids: Vec<u32>,
    texts: Vec<String>,
}

impl NumberTokens {
    /// Returns the tokens of a tokenizer that consist only of characters of a block.
    pub(crate) fn from_tokenizer(tokenizer: &Tokenizer) -> Self {
        let tokens = Vocabulary::from_tokenizer(tokenizer).tokens;
        let (ids, texts) = tokens.into_iter().filter(|(_, token)| is_number_token(token)).unzip();
        NumberTokens { ids, texts }
    }

    /// Returns whether a token consists only of characters of a block.
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.ids.binary_search(&id).is_ok()
    }

    /// Returns the text of a token; empty for other tokens.
    pub(crate) fn text(&self, id: u32) -> &str {
        self.ids.binary_search(&id).map_or("", |at| &self.texts[at])
    }
}

/// Returns whether a token consists only of characters of a block.
pub(crate) fn is_number_token(token: &str) -> bool {
    !token.is_empty() && token.chars().all(|c| NUMBER_CHARACTERS.contains(c))
}

/// Returns whether a token consists only of characters of a block and contains no pair that occurs in no block.
pub fn is_well_formed(token: &str) -> bool {
    is_number_token(token) && !MALFORMED.iter().any(|pair| token.contains(pair))
}

/// Returns whether a token consists only of `,` and `-`.
pub(crate) fn is_separator(token: &str) -> bool {
    !token.is_empty() && token.chars().all(|c| matches!(c, ',' | '-'))
}

/// Returns whether a token consists only of `,`.
pub(crate) fn is_comma(token: &str) -> bool {
    !token.is_empty() && token.chars().all(|c| c == ',')
}

/// Returns the ids of the four tags. If a tag is not a single token, all its tokens count, as in the users' code.
///
/// # Errors
/// If the tokenizer cannot encode a tag.
pub fn tags(tokenizer: &Tokenizer) -> Result<BTreeSet<u32>> {
    let mut ids = BTreeSet::new();
    for tag in [CONFORMER_OPEN, CONFORMER_CLOSE, SMILES_OPEN, SMILES_CLOSE] {
        ids.extend(tokenizer.ids(tag)?);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_tokens() {
        for token in ["0", "123", ".", ",", "-", ",-", "-.", ",-1.", "7,8"] {
            assert!(is_well_formed(token), "{token}");
        }
        for token in ["", "..", "--", ",,", ".,", ",.", ".-", "-,", "1a", "<1", "...", "0,,", "\u{120}1"] {
            assert!(!is_well_formed(token), "{token}");
        }
        assert!(is_separator(",-") && is_separator("--") && !is_separator(".,") && !is_separator(""));
        assert!(is_comma(",,") && !is_comma(",-"));
    }
}
