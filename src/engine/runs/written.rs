//! A generated text as it is judged and written to files: the answer to its prompt, with the tags around it.

use std::collections::BTreeSet;

use super::answers::{tag_of_prompt, with_tags};
use super::checkpoint::Checkpoint;
use crate::generate::{End, GeneratedText};
use drift_core::constraint::ProcessorKind;
use drift_core::constraint::automaton::AnswerForm;
use drift_core::constraint::strip_junk;
use drift_core::text::CONFORMER_CLOSE;
use drift_core::{Encoding, Result, Tokenizer};
use drift_data::audit::{self, Mark, MarkKind};

/// A generated text as it is written to files and judged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WrittenText {
    /// The text after the prompt, completed with surrounding tags that were not written.
    pub text: String,
    /// The number of bytes at its start that belong to the prompt.
    pub of_prompt: usize,
    /// The number of tokens that are only junk or invented digits.
    pub wasted_tokens: u64,
    /// The blocks that were closed by force although the model would have continued the number; `None` if the text itself shows
    /// them.
    pub truncated: Option<Box<[usize]>>,
}

impl WrittenText {
    /// Returns the text of a sample.
    ///
    /// # Errors
    /// If a token does not belong to the tokenizer.
    pub(crate) fn new(
        checkpoint: &Checkpoint,
        kind: ProcessorKind,
        form: AnswerForm,
        sample: &GeneratedText,
    ) -> Result<Self> {
        let written = checkpoint.tokenizer.answer_text(&sample.tokens)?;
        let close = checkpoint.tokenizer.vocabulary_id(CONFORMER_CLOSE);
        // Without a mask, a tag that ends texts beside other tokens is written.
        let is_written = kind == ProcessorKind::None && !checkpoint.specials.ends.is_empty();
        let closed = close == Some(checkpoint.specials.eos) && sample.end == End::Eos && !is_written;
        let of_prompt = tag_of_prompt(&written, form, sample.generation).len();
        let text = with_tags(written, form, (sample.generation, closed));
        let encoding = checkpoint.encoding;
        Ok(WrittenText {
            wasted_tokens: wasted_tokens(checkpoint, sample, &text, of_prompt),
            truncated: encoding.is_stripped().then(|| truncated(&checkpoint.tokenizer, sample, encoding)),
            text,
            of_prompt,
        })
    }

    /// Returns the text with the junk stripped from its numbers, as users proposed.
    pub(crate) fn stripped(self, encoding: Encoding) -> Self {
        WrittenText { text: strip_junk(&self.text, encoding), ..self }
    }
}

/// Returns the number of tokens that are only junk or invented digits. The first bytes of the text belong to the prompt.
fn wasted_tokens(checkpoint: &Checkpoint, sample: &GeneratedText, text: &str, of_prompt: usize) -> u64 {
    let marks = audit::marks(text, checkpoint.encoding);
    // Most texts have no flaw, so their tokens need not be decoded.
    if marks.iter().all(|mark| mark.flaw == MarkKind::Lost) {
        return 0;
    }
    wasted(&token_texts(&checkpoint.tokenizer, &sample.tokens), of_prompt, &marks)
}

/// Returns the blocks that were closed by force although the model would have continued the number.
fn truncated(tokenizer: &Tokenizer, sample: &GeneratedText, encoding: Encoding) -> Box<[usize]> {
    if sample.preferred.is_empty() {
        return Box::default();
    }
    let texts = token_texts(tokenizer, &sample.tokens);
    let text = texts.concat();
    let blocks = encoding.slot_ranges(&text);
    let is_cut = |(place, token): &(usize, u32)| {
        let at = texts[..*place].iter().map(String::len).sum::<usize>();
        let block = blocks.iter().position(|block| block.start <= at && at <= block.end)?;
        let next = tokenizer.decode(&[*token]).unwrap_or_default();
        audit::goes_on(&text[blocks[block].start..at], &next, encoding).then_some(block)
    };
    let blocks: BTreeSet<usize> = sample.preferred.iter().filter_map(is_cut).collect();
    blocks.into_iter().collect()
}

/// Returns the number of tokens of a text that lie inside junk or invented digits. The first token begins at byte `begin`.
fn wasted(tokens: &[String], begin: usize, marks: &[Mark]) -> u64 {
    let mut at = begin;
    let mut is_wasted = |text: &String| {
        let (start, end) = (at, at + text.len());
        at = end;
        let mut flawed = marks.iter().filter(|mark| mark.flaw != MarkKind::Lost);
        flawed.any(|mark| mark.range.start <= start && end <= mark.range.end)
    };
    tokens.iter().map(|text| u64::from(is_wasted(text))).sum()
}

/// Returns the text of each token.
pub(crate) fn token_texts(tokenizer: &Tokenizer, tokens: &[u32]) -> Vec<String> {
    // A token that is only part of a character becomes a replacement character; such text is junk anyway.
    tokens.iter().map(|token| tokenizer.decode(&[*token]).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::constraint::automaton::AnswerForm;
    use drift_core::encoding::Encoding;
    use drift_core::text::CONFORMER_OPEN;

    /// The same tokens are wasted whether the opening tag is one of them or the prompt's.
    #[test]
    fn tokens_of_opened_prompts_are_where_the_marks_are() {
        let tokens = ["[C]", "<", "1.0000", ",", "2.0000", ",", "3.0000", "ab", "ra", ">"].map(str::to_owned);
        let (opened, plain) = (AnswerForm { conformers: 2, opened: true }, AnswerForm::default());
        let of = |tokens: &[String], form: AnswerForm, generation: usize| {
            let written = tokens.concat();
            let begin = tag_of_prompt(&written, form, generation).len();
            let text = with_tags(written, form, (generation, true));
            (wasted(tokens, begin, &audit::marks(&text, Encoding::FIXED)), text)
        };
        let with_tag = [&[CONFORMER_OPEN.to_owned()], &tokens[..]].concat();
        let (own, text) = of(&with_tag, plain, 0);
        assert_eq!((own, of(&tokens, opened, 2)), (2, (2, text)));
        // Only the first conformer of a text is opened by its prompt.
        assert_eq!(of(&with_tag, opened, 3).0, 2);
    }
}
