//! Parses and writes enriched SMILES.

use super::skeleton::ring_digits;
use crate::encoding::{BlockError, DecimalForms, Encoding, Fixed, NumberError, Reading, Slots};

/// The parts of an enriched text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnrichedText {
    /// The text with every block emptied: `[C]<>[C]<>=[O]<>`.
    pub skeleton: String,
    /// One entry per block, in text order, in the encoding's own units.
    pub coordinates: Vec<[Fixed; 3]>,
    /// The conventions for trailing zeros that the numbers agree with.
    pub written: DecimalForms,
    /// The encoding of `coordinates`.
    pub encoding: Encoding,
}

/// Why a text was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {problem}")]
pub struct TextError {
    /// The byte offset in the text.
    pub at: usize,
    /// The problem at this offset.
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
    /// A `[` or `<` that is never closed.
    #[error("unclosed `{0}`")]
    Unclosed(char),
    /// A character that may not occur in the skeleton.
    #[error("unexpected {0:?}")]
    Unexpected(char),
    /// A block without valid numbers.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A coordinate that the requested encoding cannot represent.
    #[error("a coordinate that cannot be written: {0}")]
    Number(#[from] NumberError),
    /// Parentheses that do not match.
    #[error("unbalanced parentheses")]
    Parentheses,
    /// No atom at all.
    #[error("no atom")]
    Empty,
}

/// Parses a text without tags: atoms `[…]` with SMILES bonds, ring digits, branches and dots between them, and a slot of
/// coordinates behind each atom, or behind each symbol. Values are returned in the encoding of `reading`, or as written.
///
/// # Errors
/// The first position that breaks the grammar.
pub fn parse(text: &str, reading: Reading) -> Result<EnrichedText, TextError> {
    let encoding = reading.texts.unwrap_or(reading.encoding);
    let bytes = text.as_bytes();
    // An atom with its block of four decimals takes at least 24 bytes.
    let slots = bytes.len() / 24 + 1;
    let mut out = EnrichedText {
        skeleton: String::with_capacity(slots * 8),
        coordinates: Vec::with_capacity(slots),
        written: DecimalForms::ANY,
        encoding: if reading.as_written { encoding } else { reading.encoding },
    };
    let behind_each = encoding.slots() == Slots::Symbols;
    let (mut at, mut copied, mut depth) = (0, 0, 0usize);
    while at < bytes.len() {
        let atom = bytes[at] == b'[';
        at = symbol_end(text, at, &mut depth)?;
        if atom || behind_each {
            let start = at + encoding.open().len();
            if !bytes[at..].starts_with(encoding.open().as_bytes()) {
                // The error points to the last character of the symbol, behind which the slot is missing.
                return Err(error(at - 1, TextProblem::MissingBlock));
            }
            let Some((end, behind)) = encoding.slot_end(bytes, start) else {
                return Err(error(at, TextProblem::Unclosed(encoding.open().chars().next().unwrap_or('<'))));
            };
            let (values, written) = encoding
                .parse_numbers(&bytes[start..end], reading.cut)
                .map_err(|problem| error(start, problem.into()))?;
            let values = converted(values, encoding, out.encoding).map_err(|e| error(start, e.into()))?;
            out.coordinates.push(values);
            out.written = out.written.join(written);
            out.skeleton.push_str(&text[copied..at]);
            out.skeleton.push_str("<>");
            copied = behind;
            at = behind;
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

/// Converts values to the requested encoding.
#[inline]
fn converted(values: [Fixed; 3], from: Encoding, to: Encoding) -> Result<[Fixed; 3], NumberError> {
    if from == to { Ok(values) } else { to.convert(&values, from) }
}

/// Returns the end of the symbol at `at`: an atom in brackets, a ring number, a bond, a parenthesis or a dot.
fn symbol_end(text: &str, at: usize, depth: &mut usize) -> Result<usize, TextError> {
    let bytes = text.as_bytes();
    let mut end = at + 1;
    match bytes[at] {
        b'[' => end = atom_end(bytes, at)?,
        b'<' => return Err(error(at, TextProblem::StrayBlock)),
        b'(' => *depth += 1,
        b')' => *depth = depth.checked_sub(1).ok_or_else(|| error(at, TextProblem::Parentheses))?,
        // A `%` without digits is not valid SMILES; the SMILES parser reports it.
        b'%' => end += ring_digits(&bytes[end..]),
        b'-' | b'=' | b'#' | b'$' | b':' | b'/' | b'\\' | b'~' | b'.' | b'0'..=b'9' => {}
        _ => return Err(error(at, unexpected(text, at))),
    }
    Ok(end)
}

/// Returns the offset behind the atom at `at`.
fn atom_end(bytes: &[u8], at: usize) -> Result<usize, TextError> {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b']' {
        if matches!(bytes[end], b'[' | b'<' | b'>') || !bytes[end].is_ascii_graphic() {
            return Err(error(at, TextProblem::Unclosed('[')));
        }
        end += 1;
    }
    match bytes.get(end) {
        None => Err(error(at, TextProblem::Unclosed('['))),
        Some(_) if end == at + 1 => Err(error(end, TextProblem::MissingBlock)),
        Some(_) => Ok(end + 1),
    }
}

fn error(at: usize, problem: TextProblem) -> TextError {
    TextError { at, problem }
}

fn unexpected(text: &str, at: usize) -> TextProblem {
    TextProblem::Unexpected(text[at..].chars().next().unwrap_or('\u{fffd}'))
}

/// Writes `coordinates` into the slots of `skeleton`, in order. Further slots stay empty.
pub fn write(skeleton: &str, coordinates: &[[Fixed; 3]], encoding: Encoding) -> String {
    let mut out = String::with_capacity(skeleton.len() + coordinates.len() * 24);
    append(skeleton, coordinates, encoding, &mut out);
    out
}

/// Appends `skeleton` to `out`, with `coordinates` in its slots, in order. Further slots stay empty.
pub fn append(skeleton: &str, coordinates: &[[Fixed; 3]], encoding: Encoding, out: &mut String) {
    let mut rest = skeleton;
    for values in coordinates {
        let Some(open) = memchr::memchr(b'<', rest.as_bytes()) else { break };
        out.push_str(&rest[..open]);
        rest = rest[open + 1..].strip_prefix('>').unwrap_or(&rest[open + 1..]);
        encoding.write_slot(values, out);
    }
    out.push_str(rest);
}

/// Rewrites a text so that its slots have the form `<1,2,3>` behind atoms. Slots behind other symbols are removed. Numbers keep
/// their spelling; a slot with one number gets two zeros. Text that cannot be recognised as a slot stays unchanged.
pub fn in_brackets(text: &str, encoding: Encoding) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() * 3 / 2);
    let (mut at, mut depth) = (0, 0);
    while let Some(first) = text[at..].chars().next() {
        // An unmatched closing parenthesis is reported by the code that reads the result.
        depth = depth.max(1);
        let (atom, symbol) = (first == '[', symbol_end(text, at, &mut depth));
        let slots = symbol.is_ok() && (atom || encoding.slots() == Slots::Symbols);
        // Text that is not a symbol is copied, for the code that judges the result.
        let end = symbol.unwrap_or(at + first.len_utf8());
        out.push_str(&text[at..end]);
        at = end;
        let start = at + encoding.open().len();
        if !slots || !bytes[at..].starts_with(encoding.open().as_bytes()) {
            continue;
        }
        let slot = encoding.slot_end(bytes, start).filter(|(inside, _)| *inside > start);
        let Some((inside, behind)) = slot else { continue };
        at = behind;
        if atom {
            out.extend(["<", &*with_commas(&text[start..inside], encoding), ">"]);
        }
    }
    out
}

/// Returns the numbers of a slot, separated by commas.
fn with_commas(inside: &str, encoding: Encoding) -> String {
    match encoding.separator() {
        "" if encoding.numbers() == 1 => format!("{inside},0,0"),
        "" => {
            // Slots end where digits end, so these are ASCII.
            let numbers = inside.as_bytes().chunks(encoding.width().max(1));
            let numbers: Vec<&str> = numbers.filter_map(|number| std::str::from_utf8(number).ok()).collect();
            numbers.join(",")
        }
        separator => inside.replace(separator, ","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<EnrichedText, TextError> {
        super::parse(text, Reading::default())
    }

    #[test]
    fn splits_and_joins() {
        let text = "[C]<4.0182,1.0374,0.0007>[C]<3.0038,0.0615,0.4370>=[O]<2.0988,-0.4840,-12.6413>";
        let parsed = parse(text).unwrap();
        assert_eq!(parsed.skeleton, "[C]<>[C]<>=[O]<>");
        assert_eq!(parsed.coordinates[2], [20_988, -4_840, -126_413]);
        assert_eq!(parsed.written, DecimalForms { fixed: true, stripped: false });
        assert_eq!(write(&parsed.skeleton, &parsed.coordinates, Encoding::FIXED), text);
        let stripped = write(&parsed.skeleton, &parsed.coordinates, Encoding::STRIPPED);
        assert_eq!(parse(&stripped).unwrap().written, DecimalForms { fixed: false, stripped: true });
    }

    /// Every definition that is accepted writes texts that are read back, and its slots are found in them.
    #[test]
    fn what_an_encoding_writes_is_read_back() {
        let decimal = r#"{"kind": "decimal", "decimals": 2, "trailing_zeros": true}"#;
        let stripped = r#"{"kind": "decimal", "decimals": 2, "trailing_zeros": false}"#;
        let integer = r#"{"kind": "integer", "scale": 10, "width": 2, "most": 4999, "signed": true, "rounding": "floor"}"#;
        // By axis 200, 2,000 and 200 bins.
        let bins = |width: usize| {
            let axis = |step: f64| format!(r#"{{"low": -10, "high": 10, "step": {step}}}"#);
            let axes = [0.1, 0.01, 0.1].map(axis).join(", ");
            format!(r#"{{"kind": "index", "width": {width}, "axes": [{axes}]}}"#)
        };
        let skeleton = "[C]<>1([O]<>)[N]<>=[C]<>(%10[C]<>)[C]<>1";
        let coordinates = [[1.0, 9.5, 0.0], [-1.0, -9.55, 0.25], [0.0, 5.0, 0.0], [-3.5, 2.5, 9.99]];
        let mut read = 0;
        for number in [decimal, stripped, integer, &bins(3), &bins(4)] {
            for open in ["", "<", "(", "|", " ", ",", "=<", ";", "<x"] {
                for separator in ["", ",", "|", " ", ";", ",;", ";;", "::", "y"] {
                    for close in ["", ">", ";", ",", "|", "\\n", ",;", ";;", ";>", " ;", ">)", "; ", "z>"] {
                        let file = format!(
                            r#"{{"schema": "drift.encoding/1", "name": "own", "open": "{open}", "separator": "{separator}", "close": "{close}", "numbers": 3, "number": {number}}}"#
                        );
                        let Ok(encoding) = file.parse::<Encoding>() else { continue };
                        let values: Vec<_> = coordinates
                            .iter()
                            .chain(&coordinates[..2])
                            .map(|position| encoding.quantize(*position).unwrap())
                            .collect();
                        let text = write(skeleton, &values, encoding);
                        let parsed = super::parse(&text, Reading::new(encoding).of_texts());
                        let parsed = parsed.unwrap_or_else(|e| panic!("{e}: {text:?} of {file}"));
                        assert_eq!((&*parsed.skeleton, &parsed.coordinates), (skeleton, &values), "{file}");
                        // Readers trim the white space that may close the last slot.
                        let trimmed = super::parse(text.trim_end(), Reading::new(encoding).of_texts());
                        assert_eq!(trimmed, Ok(parsed.clone()), "{text:?} of {file}");
                        let inside = |values| {
                            let mut out = String::new();
                            encoding.write_numbers(values, &mut out);
                            out
                        };
                        let expected: Vec<String> = values.iter().map(inside).collect();
                        let ranges = encoding.slot_ranges(&text);
                        let found: Vec<&str> = ranges.into_iter().map(|range| &text[range]).collect();
                        assert_eq!(found, expected, "{text:?} of {file}");
                        read += 1;
                    }
                }
            }
        }
        assert!(read > 1_000, "{read}");
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
