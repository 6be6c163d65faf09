//! Prompt and answer as tokens of the one text that they form.
//!
//! A model is trained on whole texts, `[SMILES]…[/SMILES][CONFORMER]…[/CONFORMER]`. If the tags are added tokens, prompt and answer
//! can be encoded separately. Otherwise a token may cross the border (`][`), and a tokenizer that adds a space before every text
//! would add one before the answer. So the answer's tokens are those tokens of the whole text that end behind the prompt, and the
//! prompt's tokens are the ones before. A token that crosses the border is the first token of the answer.

use super::load::Tokenizer;
use super::{Token, TokenRole};
use crate::encoding::Encoding;
use crate::error::Result;
use crate::text::CONFORMER_OPEN;

/// An example prompt, as far as the tokens of an answer may depend on it.
pub(crate) const SOME_PROMPT: &str = "[SMILES]C[/SMILES]";

/// The ids of a prompt, with the post-processor's prefix.
struct PromptBefore {
    /// Those before an answer.
    ids: Vec<u32>,
    /// Those of the prompt without an answer.
    alone: Vec<u32>,
}

impl Tokenizer {
    /// Returns the tokens of an answer behind a prompt. Offsets count from the beginning of the answer; a first token that begins in the
    /// prompt gets offset 0.
    ///
    /// # Errors
    /// As [`Tokenizer::tokens`].
    pub fn answer_tokens(&self, answer: &str) -> Result<Vec<Token>> {
        self.answer_tokens_of(answer, Encoding::FIXED)
    }

    /// Returns the tokens of an answer behind a prompt, as in [`Tokenizer::answer_tokens`]. Tokens inside of this encoding's slots are
    /// FREE.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text.
    pub fn answer_tokens_of(&self, answer: &str, encoding: Encoding) -> Result<Vec<Token>> {
        let before = SOME_PROMPT.len();
        let mut tokens = self.tokens_of(&format!("{SOME_PROMPT}{answer}"), encoding)?;
        tokens.retain(|token| token.end > before);
        for token in &mut tokens {
            debug_assert!(token.start >= before || token.class == TokenRole::Copy);
            token.start = token.start.saturating_sub(before);
            token.end -= before;
        }
        Ok(tokens)
    }

    /// Returns the ids of [`Tokenizer::answer_tokens`].
    ///
    /// # Errors
    /// As [`Tokenizer::tokens`].
    pub fn answer_ids(&self, answer: &str) -> Result<Vec<u32>> {
        Ok(self.answer_tokens(answer)?.into_iter().map(|token| token.id).collect())
    }

    /// Returns the ids of a prompt that an answer follows, including the prefix that the post-processor adds to a text (Llama's beginning
    /// of text, nothing for Qwen).
    ///
    /// # Errors
    /// As [`Tokenizer::ids`].
    pub fn prompt_ids(&self, prompt: &str) -> Result<Vec<u32>> {
        self.prompt_ids_before(prompt, &format!("{CONFORMER_OPEN}[C]<"))
    }

    /// Returns the ids of a prompt that a text follows which begins so, as [`Tokenizer::prompt_ids`].
    ///
    /// # Errors
    /// As [`Tokenizer::ids`].
    pub fn prompt_ids_before(&self, prompt: &str, begun: &str) -> Result<Vec<u32>> {
        Ok(self.prompt_before(prompt, begun)?.ids)
    }

    /// Returns the ids of a prompt that an answer follows, if they are not those of the prompt alone, because a token crosses its end
    /// (`][`). `begun` is the part of the answer's first tag that the prompt lacks: the tag or nothing.
    ///
    /// # Errors
    /// As [`Tokenizer::ids`].
    pub fn prompt_ids_apart(&self, prompt: &str, begun: &str) -> Result<Option<Vec<u32>>> {
        let PromptBefore { ids, alone } = self.prompt_before(prompt, &format!("{begun}[C]<"))?;
        Ok((ids != alone).then_some(ids))
    }

    /// Returns whether an answer behind the tokens of a prompt begins as behind a prompt of this end. Behind `[/SMILES]` Qwen's first
    /// token is `][`, behind a chat's `assistant\n` it is `[`. `prompt` is the text of the tokens, without the part of the end that the
    /// first token of the answer has; `begun` is the part of the answer's first tag that prompts lack.
    ///
    /// # Errors
    /// As [`Tokenizer::ids`].
    pub fn begins_as_behind(&self, end: &str, prompt: &str, begun: &str) -> Result<bool> {
        let expected = self.first_tokens(end, begun)?;
        let held = expected.first().map_or(end.len(), |token| token.start);
        if held < end.len() {
            return Ok(prompt.ends_with(&end[..held]));
        }
        let ids = |tokens: &[Token]| tokens.iter().map(|token| token.id).collect::<Vec<u32>>();
        Ok(ids(&self.first_tokens(prompt, begun)?) == ids(&expected))
    }

    /// Returns the first tokens of an answer behind a prompt. The first may begin in the prompt.
    fn first_tokens(&self, prompt: &str, begun: &str) -> Result<Vec<Token>> {
        let mut tokens = self.tokens(&format!("{prompt}{begun}[C]<"))?;
        tokens.retain(|token| token.end > prompt.len());
        Ok(tokens)
    }

    /// Returns the ids of a prompt's text alone, with the prefix that the post-processor adds to a text.
    ///
    /// # Errors
    /// As [`Tokenizer::ids`].
    pub fn prompt_ids_alone(&self, prompt: &str) -> Result<Vec<u32>> {
        Ok(self.prompt_before(prompt, "")?.alone)
    }

    fn prompt_before(&self, prompt: &str, begun: &str) -> Result<PromptBefore> {
        let ids = self.ids(prompt)?;
        let whole = self.encoded(prompt, true, false)?.get_ids().to_vec();
        // A suffix of the post-processor is left out, because it would end the text before the answer.
        let before = whole.windows(ids.len().max(1)).position(|window| window == ids).unwrap_or(0);
        // The prompt's last tokens may depend on the text behind it, so the prompt is encoded with the beginning of an answer.
        let mut tokens = self.tokens(&format!("{prompt}{begun}"))?;
        tokens.retain(|token| token.end <= prompt.len());
        let prefix = &whole[..before];
        let behind: Vec<u32> = tokens.iter().map(|token| token.id).collect();
        Ok(PromptBefore { ids: [prefix, &behind].concat(), alone: [prefix, &ids].concat() })
    }

    /// Returns the text of an answer's ids, including special tokens, without characters of the prompt in the first token.
    ///
    /// # Errors
    /// If the tokenizer's decoder refuses them.
    pub fn answer_text(&self, ids: &[u32]) -> Result<String> {
        let text = self.decode(ids)?;
        let of_prompt = self.held_of_prompt()?;
        Ok(match text.strip_prefix(&*of_prompt) {
            Some(answer) => answer.to_owned(),
            None => text,
        })
    }

    /// Returns the characters of the prompt in the first token of an answer; empty if the tags are tokens.
    fn held_of_prompt(&self) -> Result<String> {
        let tokens = self.first_tokens(SOME_PROMPT, CONFORMER_OPEN)?;
        Ok(tokens.first().map_or("", |token| &SOME_PROMPT[token.start.min(SOME_PROMPT.len())..]).to_owned())
    }
}
