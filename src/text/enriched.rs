//! Parsing and writing enriched SMILES.

use super::block::{BlockError, parse_block, write_block};
use super::dialect::{Dialect, Fixed, Reading, Written};

/// What a text is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enriched {
    /// The text with every block emptied: `[C]<>[C]<>=[O]<>`.
    pub skeleton: String,
    /// One entry per block, in text order, in units of the last decimal.
    pub coordinates: Vec<[Fixed; 3]>,
    /// Which dialects the numbers agree with.
    pub written: Written,
}

/// Why a text was refused, with the byte offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {problem}")]
pub struct TextError {
    /// Byte offset in the text.
    pub at: usize,
    /// What is wrong there.
    pub problem: TextProblem,
}

/// The kinds of [`TextError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextProblem {
    /// An atom `[…]` without a block after it.
    #[error("atom without a coordinate block")]
    MissingBlock,
    /// A block that follows no atom.
    #[error("coordinate block without an atom before it")]
    StrayBlock,
    /// `[` or `<` that is never closed.
    #[error("unclosed `{0}`")]
    Unclosed(char),
    /// A character that has no place in the skeleton.
    #[error("unexpected {0:?}")]
    Unexpected(char),
    /// A block that does not hold three numbers.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// Parentheses that do not match.
    #[error("unbalanced parentheses")]
    Parentheses,
    /// No atom at all.
    #[error("no atom")]
    Empty,
}

/// Parses a text without tags: atoms `[…]<x,y,z>` and SMILES bonds, ring digits, branches and dots between them.
///
/// # Errors
/// The first place that breaks the grammar.
pub fn parse(text: &str, reading: Reading) -> Result<Enriched, TextError> {
    let bytes = text.as_bytes();
    let blocks = bytes.len() / 24 + 1;
    let mut out = Enriched {
        skeleton: String::with_capacity(blocks * 8),
        coordinates: Vec::with_capacity(blocks),
        written: Written::ANY,
    };
    let (mut at, mut copied, mut depth) = (0, 0, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'[' => {
                let open = atom_end(bytes, at)?;
                let close = memchr::memchr(b'>', &bytes[open..])
                    .map(|n| open + n)
                    .ok_or_else(|| error(open, TextProblem::Unclosed('<')))?;
                out.skeleton.push_str(&text[copied..=open]);
                let (values, written) = parse_block(&bytes[open + 1..close], reading)
                    .map_err(|problem| error(open + 1, problem.into()))?;
                out.coordinates.push(values);
                out.written = out.written.join(written);
                copied = close;
                at = close + 1;
            }
            b'<' => return Err(error(at, TextProblem::StrayBlock)),
            b'(' => {
                depth += 1;
                at += 1;
            }
            b')' => {
                depth = depth.checked_sub(1).ok_or_else(|| error(at, TextProblem::Parentheses))?;
                at += 1;
            }
            b'-' | b'=' | b'#' | b'$' | b':' | b'/' | b'\\' | b'~' | b'.' | b'%' | b'0'..=b'9' => at += 1,
            _ => return Err(error(at, unexpected(text, at))),
        }
    }
    if depth != 0 {
        return Err(error(bytes.len(), TextProblem::Parentheses));
    }
    if out.coordinates.is_empty() {
        return Err(error(0, TextProblem::Empty));
    }
    out.skeleton.push_str(&text[copied..]);
    Ok(out)
}

/// The offset of the `<` that follows the atom at `at`.
fn atom_end(bytes: &[u8], at: usize) -> Result<usize, TextError> {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b']' {
        if matches!(bytes[end], b'[' | b'<' | b'>') || !bytes[end].is_ascii_graphic() {
            return Err(error(at, TextProblem::Unclosed('[')));
        }
        end += 1;
    }
    match bytes.get(end + 1) {
        Some(b'<') if end > at + 1 => Ok(end + 1),
        _ if end >= bytes.len() => Err(error(at, TextProblem::Unclosed('['))),
        _ => Err(error(end, TextProblem::MissingBlock)),
    }
}

fn error(at: usize, problem: TextProblem) -> TextError {
    TextError { at, problem }
}

fn unexpected(text: &str, at: usize) -> TextProblem {
    TextProblem::Unexpected(text[at..].chars().next().unwrap_or('\u{fffd}'))
}

/// Writes `coordinates` into the blocks of `skeleton`, in order; blocks beyond them stay empty.
pub fn write(skeleton: &str, coordinates: &[[Fixed; 3]], dialect: Dialect) -> String {
    let mut out = String::with_capacity(skeleton.len() + coordinates.len() * 24);
    append(skeleton, coordinates, dialect, &mut out);
    out
}

/// As [`write()`], appended to `out`.
pub fn append(skeleton: &str, coordinates: &[[Fixed; 3]], dialect: Dialect, out: &mut String) {
    let mut rest = skeleton;
    for block in coordinates {
        let Some(open) = memchr::memchr(b'<', rest.as_bytes()) else { break };
        out.push_str(&rest[..=open]);
        rest = &rest[open + 1..];
        write_block(block, dialect, out);
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Enriched, TextError> {
        super::parse(text, Reading::default())
    }

    #[test]
    fn splits_and_joins() {
        let text = "[C]<4.0182,1.0374,0.0007>[C]<3.0038,0.0615,0.4370>=[O]<2.0988,-0.4840,-12.6413>";
        let parsed = parse(text).unwrap();
        assert_eq!(parsed.skeleton, "[C]<>[C]<>=[O]<>");
        assert_eq!(parsed.coordinates[2], [20_988, -4_840, -126_413]);
        assert_eq!(parsed.written, Written { fixed: true, stripped: false });
        assert_eq!(write(&parsed.skeleton, &parsed.coordinates, Dialect::FIXED), text);
        let stripped = write(&parsed.skeleton, &parsed.coordinates, Dialect::STRIPPED);
        assert_eq!(parse(&stripped).unwrap().written, Written { fixed: false, stripped: true });
    }

    #[test]
    fn refuses_with_a_place() {
        for (text, at, problem) in [
            ("[C]<1,2>", 4, BlockError::Count(2).into()),
            ("[C]<1,2,3,4>", 4, BlockError::Count(4).into()),
            ("[C]", 2, TextProblem::MissingBlock),
            ("[C", 0, TextProblem::Unclosed('[')),
            ("[C]<1,2,3", 3, TextProblem::Unclosed('<')),
            ("[C]<1,2,3>)", 10, TextProblem::Parentheses),
            ("<1,2,3>", 0, TextProblem::StrayBlock),
            ("C<1,2,3>", 0, TextProblem::Unexpected('C')),
            ("", 0, TextProblem::Empty),
        ] {
            assert_eq!(parse(text), Err(TextError { at, problem }), "{text}");
        }
        for number in ["nan", "1e3", "1.", ".5", "00.5", "--1", "1.23456", "100000", ""] {
            assert!(parse(&format!("[C]<0,0,{number}>")).is_err(), "{number}");
        }
    }
}
