//! The tokens of a text and the drift of its blocks: the data of `drift inspect`.

use std::ops::Range;

use serde::Serialize;

use super::{Token, TokenRole, Tokenizer};
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::parameter;
use crate::text::{skeleton, slot_ranges};

/// The tokens and blocks of one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedText {
    /// The text.
    pub text: String,
    /// The number of its tokens.
    pub count: usize,
    /// The number of its tokens that a template leaves to the model.
    pub free: usize,
    /// The number of its other tokens.
    pub copy: usize,
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// Its blocks.
    pub blocks: Vec<InspectedBlock>,
}

/// One block of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedBlock {
    /// The text between the brackets.
    pub text: String,
    /// T: the number of its FREE tokens.
    pub free: usize,
    /// F: the number of FREE tokens of the placeholder in the same context.
    pub placeholder_free: usize,
    /// F - T: the number of junk slots if positive, of lost tokens if negative.
    pub drift: i64,
}

/// Inspects texts with one tokenizer and one placeholder.
pub struct Inspector {
    tokenizer: Tokenizer,
    encoding: Encoding,
    placeholder: String,
}

impl Inspector {
    /// Refuses a placeholder that is not the content of a slot. Needs no tokenizer.
    ///
    /// # Errors
    /// If it contains a bracket, or the encoding reads it as something else: with a part of it outside of the slot, or as no slot.
    pub fn check(placeholder: &str, encoding: Encoding) -> Result<()> {
        if placeholder.contains(['<', '>']) {
            let problem = format!("`{placeholder}` contains a bracket");
            return Err(Error::parameter(parameter::PLACEHOLDER, problem, "give the content of a block"));
        }
        let filled = skeleton::fill("[C]<>", placeholder, encoding);
        let is_slot =
            slot_ranges(&filled, encoding).last().is_some_and(|range| &filled[range.clone()] == placeholder);
        if is_slot && encoding.reads(placeholder) {
            return Ok(());
        }
        let problem = format!("`{placeholder}` is no slot of {encoding}");
        let remedy = format!("give such numbers as {}", encoding.numbers_text(&[0; 3]));
        Err(Error::parameter(parameter::PLACEHOLDER, problem, remedy))
    }

    /// Counts drift against `placeholder`, the content of a slot of the encoding.
    ///
    /// # Errors
    /// As [`Inspector::check`].
    pub fn new(tokenizer: Tokenizer, placeholder: &str, encoding: Encoding) -> Result<Self> {
        Self::check(placeholder, encoding)?;
        Ok(Inspector { tokenizer, encoding, placeholder: placeholder.to_owned() })
    }

    /// Returns the tokens of a text, without special tokens of the post-processor, and its blocks.
    ///
    /// # Errors
    /// As [`Tokenizer::tokens`].
    pub fn inspect(&self, text: String) -> Result<InspectedText> {
        let tokens = self.tokenizer.tokens_of(&text, self.encoding)?;
        let free = tokens.iter().filter(|token| token.class == TokenRole::Free).count();
        let ranges = slot_ranges(&text, self.encoding);
        let is_block = |range: &Range<usize>| !is_name(&text, range, self.encoding);
        // The placeholder is counted inside the same text, because the borders of blocks merge with the surrounding text.
        let mut template = String::with_capacity(text.len());
        let mut copied = 0;
        for range in ranges.iter().filter(|range| is_block(range)) {
            template.push_str(&text[copied..range.start]);
            template.push_str(&self.placeholder);
            copied = range.end;
        }
        template.push_str(&text[copied..]);
        let free_ends = |text: &str| Ok::<_, Error>(self.tokenizer.in_slots(text, self.encoding)?.ends);
        let (real, forced) = (free_ends(&text)?, free_ends(&template)?);
        let blocks = ranges.iter().zip(real.iter().zip(&forced)).filter(|(range, _)| is_block(range));
        let blocks = blocks.map(|(range, (t, f))| InspectedBlock {
            text: text[range.clone()].to_owned(),
            free: t.len(),
            placeholder_free: f.len(),
            drift: f.len() as i64 - t.len() as i64,
        });
        let blocks = blocks.collect();
        Ok(InspectedText { count: tokens.len(), free, copy: tokens.len() - free, tokens, blocks, text })
    }
}

/// Returns whether a slot is the name of a special token, as in `<|endoftext|>`, `</s>` or `<bos>`. Junk stands behind the first number of
/// a block, or has its separators.
fn is_name(text: &str, slot: &Range<usize>, encoding: Encoding) -> bool {
    let inside = &text[slot.clone()];
    let is_bracketed = text[..slot.start].ends_with('<') && text[slot.end..].starts_with('>');
    let begins = inside.starts_with(|c: char| c.is_ascii_alphabetic() || "|/".contains(c));
    let separator = encoding.separator();
    is_bracketed && begins && (separator.is_empty() || !inside.contains(separator))
}
