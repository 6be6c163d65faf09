//! The template of a molecule: its skeleton with placeholders, tokenised once, in context.

use super::automaton::AnswerForm;
use super::placeholder::Placeholder;
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::text::{CONFORMER_OPEN, tagged};
use crate::tokenizer::{TokenRole, Tokenizer};

/// The action of a position template at one position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Forces this token.
    Copy(u32),
    /// Leaves the choice to the model, under a mask.
    Free {
        /// Whether the previous position is COPY, or there is none.
        first: bool,
        /// Whether the next COPY token is at most the lookahead away and contains the closing `>`.
        before_close: bool,
    },
}

/// The template of one molecule. Position 0 is the first token behind the prompt: that of `[CONFORMER]`, unless the prompt ends
/// with this tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The action at each position.
    pub slots: Vec<Slot>,
}

impl Template {
    /// Tokenises a skeleton with its placeholders, once for each conformer of an answer.
    ///
    /// # Errors
    /// If the text cannot be encoded, or a token contains both a bracket and digits, so that it can be neither FREE nor COPY.
    pub fn new(
        tokenizer: &Tokenizer,
        placeholder: &Placeholder,
        lookahead: usize,
        skeleton: &str,
        encoding: Encoding,
        form: AnswerForm,
    ) -> Result<Self> {
        let text = tagged(&placeholder.fill(skeleton, encoding)).repeat(form.conformers.max(1));
        let mut tokens = tokenizer.answer_tokens_of(&text, encoding)?;
        if form.opened {
            // The prompt contains this tag already.
            tokens.retain(|token| token.end > CONFORMER_OPEN.len());
        }
        let blocks = encoding.slot_ranges(&text);
        // A token of one byte cannot cross a border.
        for token in tokens.iter().filter(|token| token.class == TokenRole::Copy && token.text.len() > 1) {
            let has_digits = blocks.iter().any(|block| {
                let (start, end) = (token.start.max(block.start), token.end.min(block.end));
                start < end && text[start..end].contains(|c: char| c.is_ascii_digit())
            });
            if has_digits {
                let problem = format!(
                    "token `{}` contains {} and digits, so a position template cannot leave the digits free",
                    token.text,
                    if token.text.contains(['<', '>']) { "a bracket" } else { "text around a slot" }
                );
                let remedy = "use the automaton, or a tokenizer of the kind `separate`";
                return Err(Error::input(&tokenizer.name, problem, remedy));
            }
        }
        // A slot without a closing character ends before the next atom.
        let closes = encoding.close().chars().next().unwrap_or('[');
        let free: Vec<bool> = tokens.iter().map(|token| token.class == TokenRole::Free).collect();
        let slots = tokens.iter().enumerate().map(|(at, token)| {
            if !free[at] {
                return Slot::Copy(token.id);
            }
            let next_copy = free[at + 1..].iter().position(|free| !free);
            Slot::Free {
                first: at == 0 || !free[at - 1],
                before_close: next_copy
                    .is_some_and(|away| away < lookahead && tokens[at + 1 + away].text.contains(closes)),
            }
        });
        Ok(Template { slots: slots.collect() })
    }

    /// This template for a model whose texts end with the template's last token, so that EOS is not written twice.
    #[must_use]
    pub(crate) fn ending_in(mut self, eos: u32) -> Self {
        if self.slots.last() == Some(&Slot::Copy(eos)) {
            self.slots.pop();
        }
        self
    }

    /// Returns the position of the next COPY slot from `at` on, or the end if there is none.
    pub(crate) fn next_copy(&self, at: usize) -> usize {
        let from = at.min(self.slots.len());
        let copy = self.slots[from..].iter().position(|slot| matches!(slot, Slot::Copy(_)));
        copy.map_or(self.slots.len(), |away| from + away)
    }
}
