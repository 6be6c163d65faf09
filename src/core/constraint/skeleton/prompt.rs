//! The tokens of a prompt before a text, and of the beginning of the text that prompts end with.

use super::{BegunText, SkeletonConstraint, SkeletonProcessor};
use crate::constraint::Mask;
use crate::error::{Error, Result};

impl SkeletonConstraint {
    /// Returns the beginning of texts in its tokens behind a prompt; the text before the answer, if both are one.
    ///
    /// # Errors
    /// If no text of the prompt begins with them.
    pub(super) fn begun_text(&self, prompt: &str) -> Result<Option<BegunText>> {
        let SkeletonProcessor { tokenizer, spellings, begun, .. } = &*self.processor;
        if begun.is_empty() {
            return Ok(None);
        }
        let whole = tokenizer.ids(&format!("{prompt}{begun}"))?;
        let behind = if prompt.is_empty() {
            Some(&whole[..])
        } else {
            spellings.behind(&whole, prompt.len(), prompt.len() + begun.len())
        };
        let ids = behind.unwrap_or_default().to_vec();
        let (row, is_legal) = self.followed(&ids);
        if ids.is_empty() || !is_legal || row.mask() == Mask::Only(&[]) {
            let problem =
                format!("no text of this prompt begins with the tokens of `{}`", begun.escape_debug());
            let remedy = "end prompts with a beginning of the text that ends where no token joins it with what follows";
            return Err(Error::input(&tokenizer.name, problem, remedy));
        }
        Ok(Some(BegunText { ids, row }))
    }

    /// Returns the ids of the prompt before a text, if both are one: without the token that joins them, with the prefix that the
    /// post-processor adds, and with the beginning of the text that prompts end with.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the prompt.
    pub fn prompt_ids(&self) -> Result<Vec<u32>> {
        let ahead = self.program.ahead(&self.program.start());
        let mut ids = self.processor.tokenizer.prompt_ids_before(&self.before.text, &ahead)?;
        ids.extend(self.begun.iter().flat_map(|begun| &begun.ids));
        Ok(ids)
    }

    /// Returns [`SkeletonConstraint::prompt_ids`] if a token crosses the end of the prompt: the grammar then begins with that token.
    ///
    /// # Errors
    /// As [`SkeletonConstraint::prompt_ids`].
    pub fn prompt_ids_apart(&self) -> Result<Option<Vec<u32>>> {
        let alone = format!("{}{}", self.before.text, self.processor.begun);
        let (ids, alone) = (self.prompt_ids()?, self.processor.tokenizer.prompt_ids_alone(&alone)?);
        Ok((ids != alone).then_some(ids))
    }
}
