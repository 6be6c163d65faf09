//! The tokens of a text, and the drift of its blocks: what `drift inspect` says.

use serde::Serialize;

use super::{Token, TokenRole, Tokenizer};
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::parameter;

/// One text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedText {
    /// The text.
    pub text: String,
    /// Its tokens, in number.
    pub count: usize,
    /// Those of them that a template leaves to the model.
    pub free: usize,
    /// The others.
    pub copy: usize,
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// Its blocks.
    pub blocks: Vec<InspectedBlock>,
}

/// One block of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InspectedBlock {
    /// What stands between the brackets.
    pub text: String,
    /// T: its FREE tokens.
    pub free: usize,
    /// F: those of the placeholder in the same context.
    pub placeholder_free: usize,
    /// F - T: junk slots where it is positive, lost tokens where it is negative.
    pub drift: i64,
}

/// Looks at texts with one tokenizer and one placeholder.
pub struct Inspector {
    tokenizer: Tokenizer,
    encoding: Encoding,
    placeholder: String,
}

impl Inspector {
    /// Refuses a placeholder that is not the inside of a block; before a tokenizer is read.
    ///
    /// # Errors
    /// If it holds a bracket.
    pub fn check(placeholder: &str) -> Result<()> {
        if placeholder.contains(['<', '>']) {
            let problem = format!("`{placeholder}` contains a bracket");
            return Err(Error::parameter(parameter::PLACEHOLDER, problem, "give the content of a block"));
        }
        Ok(())
    }

    /// Drift is counted against `placeholder`, the inside of a block.
    ///
    /// # Errors
    /// As [`Inspector::check`].
    pub fn new(tokenizer: Tokenizer, placeholder: &str) -> Result<Self> {
        Self::check(placeholder)?;
        Ok(Inspector { tokenizer, encoding: Encoding::FIXED, placeholder: placeholder.to_owned() })
    }

    /// This inspector for texts of another encoding: its slots are looked at, and hold the placeholder.
    #[must_use]
    pub fn of(self, encoding: Encoding) -> Self {
        Inspector { encoding, ..self }
    }

    /// The tokens of a text, without special tokens that a post-processor would add, and its blocks.
    ///
    /// # Errors
    /// As [`Tokenizer::tokens`].
    pub fn inspect(&self, text: String) -> Result<InspectedText> {
        let tokens = self.tokenizer.tokens_of(&text, self.encoding)?;
        let free = tokens.iter().filter(|token| token.class == TokenRole::Free).count();
        let ranges = self.encoding.slot_ranges(&text);
        // The placeholder is counted in the same text, since borders of blocks merge with what stands around them.
        let mut template = String::with_capacity(text.len());
        let mut copied = 0;
        for range in &ranges {
            template.push_str(&text[copied..range.start]);
            template.push_str(&self.placeholder);
            copied = range.end;
        }
        template.push_str(&text[copied..]);
        let free_ends = |text: &str| Ok::<_, Error>(self.tokenizer.in_slots(text, self.encoding)?.ends);
        let (real, forced) = (free_ends(&text)?, free_ends(&template)?);
        let blocks = ranges.iter().zip(real.iter().zip(&forced)).map(|(range, (t, f))| InspectedBlock {
            text: text[range.clone()].to_owned(),
            free: t.len(),
            placeholder_free: f.len(),
            drift: f.len() as i64 - t.len() as i64,
        });
        let blocks = blocks.collect();
        Ok(InspectedText { count: tokens.len(), free, copy: tokens.len() - free, tokens, blocks, text })
    }
}
