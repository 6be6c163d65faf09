//! The tokens of the text between slots, obtained from the encoder.

use super::Mode;
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::text::CONFORMER_OPEN;
use crate::tokenizer::{FixedText, TokenSpellings, Tokenizer, plain_inside};

/// Returns an error that names the tokenizer but has no remedy: the caller knows what works instead (`advice` of `drift-tune`).
pub(super) fn refuse(tokenizer: &Tokenizer, problem: impl std::fmt::Display) -> Error {
    let problem = format!("the automaton cannot be proved for this tokenizer: {problem}");
    Error::input(&tokenizer.name, problem, "")
}

/// The context on one side of a copied text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The beginning or the end of the answer.
    End,
    /// The beginning of the answer, behind an opening conformer tag that belongs to the prompt.
    Opened,
    /// A block of this mode; for the block behind the text, also whether it begins with `-`.
    Block(Mode, bool),
}

/// The inputs for tokenising copied texts.
pub(super) struct Copier<'a> {
    /// The tokenizer.
    pub tokenizer: &'a Tokenizer,
    /// Its tokens in texts.
    pub spellings: &'a TokenSpellings,
    /// How slots are written.
    pub encoding: Encoding,
    /// The end of prompts, before the tag that opens a conformer.
    pub prompt_end: &'a str,
    /// An example of an isolated block, if the tokenizer isolates blocks.
    pub isolated_block: &'a str,
}

impl Copier<'_> {
    /// Returns the tokens of a copied text between two blocks, including the brackets and the sign that are tokenised with it.
    ///
    /// # Errors
    /// If a token joins the text with a neighbouring digit, or two ways to cut the text are equally likely.
    pub(super) fn tokens(&self, before: Side, text: &str, after: Side) -> Result<Vec<u32>> {
        let (open, close) = (self.encoding.open(), self.encoding.close());
        let plain = plain_inside(self.encoding);
        // The closing and opening characters of plain slots may share a token with the text between: `>[`, `]<-`.
        let (context, closing) = match before {
            Side::End => (self.prompt_end.to_owned(), ""),
            Side::Opened => (format!("{}{CONFORMER_OPEN}", self.prompt_end), ""),
            Side::Block(Mode::Plain, _) => (format!("[C]{open}{plain}"), close),
            Side::Block(Mode::Isolated, _) => (format!("[C]{}", self.isolated_block), ""),
        };
        let (opening, behind) = match after {
            Side::End | Side::Opened => (String::new(), String::new()),
            Side::Block(Mode::Plain, negative) => {
                (format!("{open}{}", if negative { "-" } else { "" }), format!("{plain}{close}"))
            }
            Side::Block(Mode::Isolated, _) => (String::new(), self.isolated_block.to_owned()),
        };
        let copied = format!("{closing}{text}{opening}");
        // Isolated slots may be adjacent.
        if copied.is_empty() {
            return Ok(Vec::new());
        }
        // The first token of an answer may begin in the prompt.
        let is_prompt = before == Side::End;
        let fixed = FixedText { before: &context, text: &copied, after: &behind, is_prompt };
        fixed.ids(self.tokenizer, self.spellings)?.map_err(|why| refuse(self.tokenizer, why))
    }
}
