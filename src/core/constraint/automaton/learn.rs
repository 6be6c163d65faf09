//! The tokens of the text between slots, obtained from the encoder.

use super::Mode;
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::text::{CONFORMER_CLOSE, CONFORMER_OPEN};
use crate::tokenizer::boundaries::TokenBoundaries;
use crate::tokenizer::{SOME_PROMPT, Token, Tokenizer};

/// Returns an error that names the tokenizer but has no remedy: the caller knows what works instead (`advice` of `drift-tune`).
pub(super) fn refuse(tokenizer: &Tokenizer, problem: impl std::fmt::Display) -> Error {
    let problem = format!("the automaton cannot be proved for this tokenizer: {problem}");
    Error::input(&tokenizer.name, problem, "")
}

/// Returns the ids of the tokens that cover exactly the bytes from `start` to `end`; `None` if a token crosses either border.
///
/// Tokens may overlap: a space that the tokenizer adds before a text is placed where the text begins.
pub(super) fn covering(tokens: &[Token], start: usize, end: usize) -> Option<Vec<u32>> {
    let first = tokens.iter().position(|token| token.start >= start)?;
    let count = tokens[first..].iter().take_while(|token| token.end <= end).count();
    let covered = &tokens[first..first + count];
    let whole = covered.first()?.start == start
        && covered.last()?.end == end
        && covered.windows(2).all(|pair| pair[1].start <= pair[0].end)
        // The token before must not reach in, and the token behind must not begin inside.
        && tokens[..first].last().is_none_or(|before| before.end <= start)
        && tokens.get(first + count).is_none_or(|behind| behind.start >= end);
    whole.then(|| covered.iter().map(|token| token.id).collect())
}

/// The inside of a decimal slot that no tokenizer isolates, because its numbers have seven decimals.
const PLAIN_DECIMALS: &str = "0.1234567,0.1234567,0.1234567";

/// Returns the inside of a slot that is not isolated.
fn plain_inside(encoding: Encoding) -> String {
    if encoding.is_decimal() {
        return PLAIN_DECIMALS.to_owned();
    }
    encoding.numbers_text(&std::array::from_fn(|axis| encoding.number().limits(axis).1 / 2))
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
    /// How slots are written.
    pub encoding: Encoding,
    /// An example of an isolated block, if the tokenizer isolates blocks.
    pub isolated_block: &'a str,
    /// Where texts fall apart; `None` for a tokenizer that isolates blocks.
    pub cuts: Option<&'a TokenBoundaries>,
}

impl Copier<'_> {
    /// Returns the tokens of a copied text between two blocks, including the brackets and the sign that are tokenised with it.
    ///
    /// # Errors
    /// If a token joins the text with a neighbouring digit, or two ways to cut the text are equally likely.
    pub(super) fn tokens(&self, before: Side, text: &str, after: Side) -> Result<Vec<u32>> {
        let (open, close) = (self.encoding.open(), self.encoding.close());
        let plain = plain_inside(self.encoding);
        let mut whole = match before {
            Side::End => String::new(),
            Side::Opened => CONFORMER_OPEN.to_owned(),
            Side::Block(Mode::Plain, _) => format!("[C]{open}{plain}"),
            Side::Block(Mode::Isolated, _) => format!("[C]{}", self.isolated_block),
        };
        let start = whole.len();
        // The closing and opening characters of plain slots may share a token with the text between: `>[`, `]<-`.
        if let Side::Block(Mode::Plain, _) = before {
            whole.push_str(close);
        }
        whole.push_str(text);
        if let Side::Block(Mode::Plain, negative) = after {
            whole.push_str(open);
            whole.push_str(if negative { "-" } else { "" });
        }
        let end = whole.len();
        match after {
            Side::End | Side::Opened => {}
            Side::Block(Mode::Plain, _) => whole.extend([&plain, close]),
            Side::Block(Mode::Isolated, _) => whole.push_str(self.isolated_block),
        }
        // Isolated slots may be adjacent.
        if start == end {
            return Ok(Vec::new());
        }
        let copied = &whole[start..end];
        if !self.is_decided(copied, before == Side::End) {
            return Err(refuse(self.tokenizer, format!("two ways to cut `{copied}` are equally likely")));
        }
        // The first token of an answer may begin in the prompt.
        let tokens = if matches!(before, Side::End | Side::Opened) {
            self.tokenizer.answer_tokens(&whole)?
        } else {
            self.tokenizer.tokens(&whole)?
        };
        covering(&tokens, start, end).ok_or_else(|| {
            refuse(self.tokenizer, format!("`{copied}` is not separated from the digits beside it"))
        })
    }

    /// Returns whether the tokens of a copied text depend only on the text. Tags that are tokens are not counted as part of it.
    fn is_decided(&self, copied: &str, begins: bool) -> bool {
        let Some(cuts) = self.cuts else { return true };
        let tag = |text: &str| self.tokenizer.is_added(text);
        if begins && !tag(CONFORMER_OPEN) {
            // Without a tag that is a token, the first part extends into the prompt and is decided together with it.
            return cuts.is_decided(self.tokenizer, &format!("{SOME_PROMPT}{copied}"), true);
        }
        let inner = copied.strip_prefix(CONFORMER_OPEN).filter(|_| tag(CONFORMER_OPEN)).unwrap_or(copied);
        let inner = inner.strip_suffix(CONFORMER_CLOSE).filter(|_| tag(CONFORMER_CLOSE)).unwrap_or(inner);
        inner.is_empty() || cuts.is_decided(self.tokenizer, inner, begins)
    }
}
