//! Finds characters of texts that a tokenizer cannot write, because it reads them as unknown or its normalizer changes them.

use std::collections::BTreeSet;

use super::Tokenizer;
use super::normalizer::SPACE;
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::text::{self, skeleton};

/// A character that hardly any model knows. Its token is the one for unknown characters.
const UNKNOWN: &str = "\u{10fffd}";

impl Tokenizer {
    /// Refuses a tokenizer that cannot write texts of these skeletons in an encoding.
    ///
    /// # Errors
    /// If it reads a character of these texts as unknown, or as another character. The message names the characters.
    pub fn writes<'s>(&self, encoding: Encoding, skeletons: impl IntoIterator<Item = &'s str>) -> Result<()> {
        let (mut unknown, mut changed) = (BTreeSet::new(), BTreeSet::new());
        // With byte fallback, this character takes several tokens: then no character is unknown.
        let unk = self.model_ids(UNKNOWN).filter(|ids| ids.len() == 1);
        for skeleton in skeletons {
            for text in some_texts(skeleton, encoding) {
                if let Some(unk) = &unk {
                    let tokens = self.tokens_of(&text, encoding)?;
                    let lost = tokens.iter().filter(|token| token.id == unk[0]);
                    unknown.extend(lost.flat_map(|token| token.text.chars()));
                }
                changed.extend(text.chars());
            }
        }
        for c in std::mem::take(&mut changed) {
            if self.changes(c)? {
                changed.insert(c);
            }
        }
        let (lost, why) = match (unknown.is_empty(), changed.is_empty()) {
            (true, true) => return Ok(()),
            (false, _) => (unknown, "it does not know them"),
            (true, false) => (changed, "its normalizer changes them"),
        };
        let all: Vec<String> = lost.iter().take(NAMED).map(|c| format!("`{c}`")).collect();
        let more = if lost.len() > NAMED { " and more" } else { "" };
        let problem =
            format!("cannot write {}{more}, which texts of {encoding} contain: {why}", all.join(", "));
        Err(Error::input(&self.name, problem, "use a tokenizer that keeps all characters"))
    }
}

impl Tokenizer {
    /// Returns whether the normalizer makes another character of this one. It may mark spaces.
    ///
    /// # Errors
    /// If the normalizer refuses the character.
    pub(crate) fn changes(&self, c: char) -> Result<bool> {
        let (one, normal) = (c.to_string(), self.normalized(c.encode_utf8(&mut [0; 4]))?);
        Ok(normal.strip_prefix(SPACE).unwrap_or(&normal) != one && c != ' ')
    }
}

/// The largest number of characters that a message names.
const NAMED: usize = 8;

/// Texts of a skeleton with the smallest, the largest and intermediate values.
fn some_texts(skeleton: &str, encoding: Encoding) -> Vec<String> {
    let texts = [0, 1, 4, 5, 9].map(|part| {
        let values = [0, 1, 2].map(|axis| {
            let (low, high) = encoding.number().limits(axis);
            low + (high - low) / 9 * part
        });
        text::tagged(&skeleton::fill(skeleton, &encoding.numbers_text(&values), encoding))
    });
    texts.to_vec()
}
