//! What the automaton has to know of a tokenizer, learned from its encoder.

use super::states::Mode;
use crate::design::Range;
use crate::design::scheme::{BLOCK, SLOTS, Slot};
use crate::error::{Error, Result};
use crate::tokenizer::{Token, Tokenizer};

/// The longest run of digits of a block.
pub const MAX_DIGITS: usize = 4;

/// The parts of blocks and their tokens.
pub struct Pieces {
    /// Tokens of every digit run, by length and value: `runs[length - 1][value]`.
    runs: Vec<Vec<Vec<u32>>>,
    /// `.`
    pub point: Vec<u32>,
    /// `,`
    pub comma: Vec<u32>,
    /// `,-`
    pub comma_minus: Vec<u32>,
}

/// How blocks that are cut out of the text are cut further: by slots, the same in every block of the range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// First slots of the pieces.
    pub starts: Vec<usize>,
    /// Which blocks.
    pub range: Range,
}

/// An error that names the tokenizer.
pub fn refuse(tokenizer: &Tokenizer, problem: impl std::fmt::Display) -> Error {
    let problem = format!("the automaton cannot be proved for this tokenizer: {problem}");
    Error::input(&tokenizer.name, problem, "take the allowlist, or another tokenizer")
}

/// The ids of the tokens that cover exactly the bytes from `start` to `end`; `None` if a token crosses a border.
pub fn covering(tokens: &[Token], start: usize, end: usize) -> Option<Vec<u32>> {
    let first = tokens.iter().position(|token| token.start >= start)?;
    let count = tokens[first..].iter().take_while(|token| token.end <= end).count();
    let covered = &tokens[first..first + count];
    let whole = covered.first()?.start == start
        && covered.last()?.end == end
        && covered.windows(2).all(|pair| pair[0].end == pair[1].start);
    whole.then(|| covered.iter().map(|token| token.id).collect())
}

/// A block that no tokenizer isolates, since its numbers are whole.
const PLAIN_BLOCK: &str = "0,0,0";

/// A block of the smallest range, with every slot one character long.
const ISOLATED_BLOCK: &str = "<-0.1234,-0.5678,-0.9012>";

impl Pieces {
    /// Learns the pieces.
    ///
    /// # Errors
    /// If a token crosses the border of a digit run.
    pub fn learn(tokenizer: &Tokenizer) -> Result<Self> {
        let mut runs = Vec::with_capacity(MAX_DIGITS);
        for length in 1..=MAX_DIGITS {
            let count = 10usize.pow(length as u32);
            let mut all = Vec::with_capacity(count);
            for first in (0..count).step_by(10) {
                let text: String = (first..first + 10).map(|value| format!(".{value:0length$}")).collect();
                let text = format!("[C]<{text}>[C]");
                let tokens = tokenizer.tokens(&text)?;
                for run in 0..10 {
                    let start = 4 + run * (length + 1) + 1;
                    let digits = &text[start..start + length];
                    all.push(covering(&tokens, start, start + length).ok_or_else(|| {
                        refuse(tokenizer, format!("`{digits}` is not cut apart from what is beside it"))
                    })?);
                }
            }
            runs.push(all);
        }
        let between = |separator: &str| {
            let text = format!("[C]<0{separator}0{separator}0>[C]");
            let tokens = tokenizer.tokens(&text)?;
            covering(&tokens, 5, 5 + separator.len()).ok_or_else(|| {
                refuse(tokenizer, format!("`{separator}` is not cut apart from the digits beside it"))
            })
        };
        Ok(Pieces { point: between(".")?, comma: between(",")?, comma_minus: between(",-")?, runs })
    }

    /// The tokens of a run of `length` digits.
    pub fn run(&self, length: usize, value: usize) -> &[u32] {
        &self.runs[length - 1][value]
    }
}

impl Isolation {
    /// How a tokenizer isolates blocks; `None` if it does not.
    ///
    /// # Errors
    /// If it cannot encode a block.
    pub fn learn(tokenizer: &Tokenizer) -> Result<Option<Self>> {
        let Some(pieces) = pieces_of(tokenizer, ISOLATED_BLOCK)? else { return Ok(None) };
        let mut starts = Vec::with_capacity(pieces.len());
        let mut at = 0;
        for piece in &pieces {
            starts.push(at);
            at += piece.len();
        }
        let ends = starts.iter().skip(1).copied().chain([SLOTS]);
        if starts.iter().zip(ends).any(|(&start, end)| BLOCK[start..end] == [Slot::Sign]) {
            // A sign that is a token of its own: the brackets are, too, but nothing isolates blocks.
            return Ok(None);
        }
        let mut angstrom = 0;
        while angstrom < 100 {
            let filled: Vec<String> = ISOLATED_BLOCK
                .char_indices()
                .map(|(slot, c)| if slot == 2 { angstrom.to_string() } else { c.to_string() })
                .collect();
            let ends = starts.iter().skip(1).copied().chain([SLOTS]);
            let expected: Vec<String> =
                starts.iter().zip(ends).map(|(&start, end)| filled[start..end].concat()).collect();
            if pieces_of(tokenizer, &filled.concat())? != Some(expected) {
                break;
            }
            angstrom += 1;
        }
        Ok(Range::new(angstrom).ok().map(|range| Isolation { starts, range }))
    }
}

/// The texts of a block's tokens if none crosses its brackets, else `None`.
fn pieces_of(tokenizer: &Tokenizer, block: &str) -> Result<Option<Vec<String>>> {
    let text = format!("[C]{block}[C]");
    let tokens = tokenizer.tokens(&text)?;
    if covering(&tokens, 3, 3 + block.len()).is_none() {
        return Ok(None);
    }
    let inside = tokens.into_iter().filter(|token| (3..3 + block.len()).contains(&token.start));
    Ok(Some(inside.map(|token| token.text).collect()))
}

/// What stands on one side of a copied text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The answer begins or ends.
    End,
    /// A block of this mode; if it is the next one, whether it begins with `-`.
    Block(Mode, bool),
}

/// The tokens of a copied text between two blocks, with those brackets and that sign that are tokenised with it.
///
/// # Errors
/// If a token crosses the border between them and a digit.
pub fn copied(tokenizer: &Tokenizer, before: Side, text: &str, after: Side) -> Result<Vec<u32>> {
    let mut whole = String::new();
    let start = match before {
        Side::End => 0,
        Side::Block(Mode::Plain, _) => {
            whole.push_str("[C]<");
            whole.push_str(PLAIN_BLOCK);
            whole.len()
        }
        Side::Block(Mode::Isolated, _) => {
            whole.push_str("[C]");
            whole.push_str(ISOLATED_BLOCK);
            whole.len()
        }
    };
    if let Side::Block(Mode::Plain, _) = before {
        whole.push('>');
    }
    whole.push_str(text);
    let end = match after {
        Side::End => whole.len(),
        Side::Block(Mode::Isolated, _) => {
            let end = whole.len();
            whole.push_str(ISOLATED_BLOCK);
            end
        }
        Side::Block(Mode::Plain, negative) => {
            whole.push_str(if negative { "<-" } else { "<" });
            let end = whole.len();
            whole.push_str(PLAIN_BLOCK);
            whole.push('>');
            end
        }
    };
    if start == end {
        return Ok(Vec::new());
    }
    let tokens = tokenizer.tokens(&whole)?;
    covering(&tokens, start, end).ok_or_else(|| {
        refuse(tokenizer, format!("`{}` is not cut apart from the digits beside it", &whole[start..end]))
    })
}
