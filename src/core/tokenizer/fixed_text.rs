//! The tokens of a fixed text in its context: those that the encoder writes for it there, if they are its own.

use super::load::Tokenizer;
use super::spellings::TokenSpellings;
use crate::error::{Result, excerpt};

/// A text between two borders, and a sample of what stands beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedText<'t> {
    pub before: &'t str,
    pub text: &'t str,
    pub after: &'t str,
    /// Whether `before` is a prompt, whose last token may reach into the text and then is the text's first.
    pub is_prompt: bool,
}

impl FixedText<'_> {
    /// Returns the ids of the text. The inner error is a sentence that says why they are not known.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text.
    pub(crate) fn ids(
        self,
        tokenizer: &Tokenizer,
        spellings: &TokenSpellings,
    ) -> Result<std::result::Result<Vec<u32>, String>> {
        let FixedText { before, text, after, is_prompt } = self;
        let shown = || excerpt(text.as_bytes());
        let whole = tokenizer.ids(&format!("{before}{text}{after}"))?;
        if whole.iter().any(|id| spellings.is_unknown(*id)) {
            let shown = excerpt(format!("{text}{after}").as_bytes());
            return Ok(Err(format!("it has no token for a word of {shown}")));
        }
        if let Some(scores) = &spellings.scores {
            let part = if is_prompt { &format!("{before}{text}") } else { text };
            if !scores.decide(tokenizer, part, is_prompt || before.is_empty()) {
                return Ok(Err(format!("two ways to cut {} are equally likely", shown())));
            }
        }
        let [from, to] = [before.len(), before.len() + text.len()];
        let ids = match is_prompt {
            true => spellings.behind(&whole, from, to),
            false => spellings.covering(&whole, from, to),
        };
        let Some(ids) = ids else {
            return Ok(Err(format!("a token joins {} with the text beside it", shown())));
        };
        if !spellings.text(ids).ends_with(text.as_bytes()) {
            return Ok(Err(format!("its normalizer changes {}", shown())));
        }
        Ok(Ok(ids.to_vec()))
    }
}
