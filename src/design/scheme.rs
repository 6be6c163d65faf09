//! Schemes: how a block of the fixed dialect is cut into tokens.
//!
//! A block is a row of 25 *slots*: `<`, then three times sign, integer part, point and four decimals, with `,` between
//! and `>` at the end. A *scheme* cuts the row into pieces. A sign may be absent, so a piece that is a sign alone would
//! be missing from some blocks: no scheme has one. All other slots are never empty, hence every block has as many
//! pieces as the scheme, whatever its numbers are.

use serde::Serialize;

use crate::error::{Error, Result};

/// A part of a block that no scheme cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// `<`
    Open,
    /// `-` or nothing.
    Sign,
    /// One or two digits, below the range.
    Integer,
    /// `.`
    Point,
    /// One decimal.
    Digit,
    /// `,`
    Comma,
    /// `>`
    Close,
}

/// Slots of a block.
pub const SLOTS: usize = 25;

/// The most tokens that a block can have: a piece per slot, but signs.
pub const MAX_TOKENS: usize = SLOTS - 3;

/// The slots of every block.
pub const BLOCK: [Slot; SLOTS] = {
    let mut block = [Slot::Digit; SLOTS];
    block[0] = Slot::Open;
    let mut axis = 0;
    while axis < 3 {
        block[1 + 8 * axis] = Slot::Sign;
        block[2 + 8 * axis] = Slot::Integer;
        block[3 + 8 * axis] = Slot::Point;
        block[8 + 8 * axis] = if axis < 2 { Slot::Comma } else { Slot::Close };
        axis += 1;
    }
    block
};

/// Numbers of a block lie below this in magnitude, in whole Å.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Range(u32);

impl Range {
    /// A range of 1 to 100 Å: the format holds integer parts of at most two digits.
    ///
    /// # Errors
    /// If it is none.
    pub fn new(angstrom: u32) -> Result<Self> {
        if (1..=100).contains(&angstrom) {
            return Ok(Range(angstrom));
        }
        let problem = format!("the format cannot hold a range of {angstrom} Å");
        Err(Error::input("--range", problem, "integer parts have one or two digits: give 1 to 100"))
    }

    /// In Å.
    pub fn angstrom(self) -> u32 {
        self.0
    }

    /// How many spellings of one number there are: signs, integer parts, decimals. `-0.0000` is one of them.
    pub fn numbers(self) -> u64 {
        2 * u64::from(self.0) * 10_000
    }

    /// A regular expression of the integer parts.
    fn integers(self) -> String {
        let (tens, ones) = ((self.0 - 1) / 10, (self.0 - 1) % 10);
        let mut options = Vec::new();
        match tens {
            0 => return format!("[0-{ones}]"),
            1 => {}
            2 => options.push("1[0-9]".to_owned()),
            _ => options.push(format!("[1-{}][0-9]", tens - 1)),
        }
        options.push(format!("{tens}[0-{ones}]"));
        options.push("[0-9]".to_owned());
        format!("(?:{})", options.join("|"))
    }
}

/// What a piece may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// No token mixes a bracket with anything: a position template can tell FREE from COPY
    Separate,
    /// Brackets may share a token with digits: fewest tokens, for a logit processor that follows the text
    Fused,
}

impl Kind {
    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Separate => "separate",
            Kind::Fused => "fused",
        }
    }

    /// Whether a piece of these slots is allowed.
    pub fn allows(self, slots: &[Slot]) -> bool {
        let bracket = slots.iter().any(|slot| matches!(slot, Slot::Open | Slot::Close));
        slots != [Slot::Sign] && (self == Kind::Fused || !bracket || slots.len() == 1)
    }
}

/// Where the slots of a block are cut: the first slot of every piece, in order, beginning with 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    /// Numbers it holds for.
    pub range: Range,
    /// First slots of pieces.
    pub starts: Vec<usize>,
}

impl Scheme {
    /// Tokens of every block, brackets included.
    pub fn tokens_per_block(&self) -> usize {
        self.starts.len()
    }

    /// The slots of each piece.
    pub fn pieces(&self) -> impl Iterator<Item = &'static [Slot]> {
        let ends = self.starts.iter().skip(1).copied().chain([SLOTS]);
        self.starts.iter().zip(ends).map(|(&start, end)| &BLOCK[start..end])
    }

    /// Every token that a block can need, in order of first use, each once.
    pub fn strings(&self) -> Vec<String> {
        let mut seen = std::collections::HashSet::new();
        let mut all = Vec::new();
        for piece in self.pieces() {
            all.extend(strings(piece, self.range).into_iter().filter(|string| seen.insert(string.clone())));
        }
        all
    }

    /// The expression of a whole block in the range. It has no anchors and looks at nothing around it, so a block is
    /// found in every context; two blocks cannot overlap, for each begins with its only `<` and ends with its only `>`.
    pub fn block_pattern(&self) -> String {
        pattern(&BLOCK, self.range)
    }

    /// The expression that cuts a text that is exactly one block in the range, and matches nowhere in any other.
    ///
    /// The first piece must begin the text (`\A`) and be followed by the rest of a block and the text's end (`\z`). The
    /// other pieces must begin where a match ended (`\G`, and not at the beginning), so they match only after the
    /// first did, in a block. Longer pieces are tried first; where that alone does not tell pieces apart, each is also
    /// known by what is left of the block, which is slower.
    pub fn cut_pattern(&self) -> String {
        let ends: Vec<usize> = self.starts.iter().skip(1).copied().chain([SLOTS]).collect();
        let first = pattern(&BLOCK[..ends[0]], self.range);
        let left = |end: usize| pattern(&BLOCK[end..], self.range);
        let mut later: Vec<(&[Slot], Vec<String>)> = Vec::new();
        for (&start, &end) in self.starts.iter().zip(&ends).skip(1) {
            let piece = &BLOCK[start..end];
            match later.iter_mut().find(|(known, _)| *known == piece) {
                Some((_, lefts)) => lefts.push(left(end)),
                None => later.push((piece, vec![left(end)])),
            }
        }
        later.sort_by_key(|(piece, _)| std::cmp::Reverse(piece.len()));
        let pieces: Vec<&[Slot]> = later.iter().map(|(piece, _)| *piece).collect();
        let simple = self.told_apart(&pieces);
        let later: Vec<String> = later
            .into_iter()
            .map(|(piece, lefts)| {
                let piece = pattern(piece, self.range);
                if simple { piece } else { format!("{piece}(?=(?:{})\\z)", lefts.join("|")) }
            })
            .collect();
        let rest = left(ends[0]);
        format!("{CUT_MARK}\\A{first}(?={rest}\\z)|(?!\\A)(?:{}))", later.join("|"))
    }

    /// Whether trying `pieces` in their order cuts blocks as the scheme does, on blocks of every shape and many digits.
    /// Not a proof: the check of every number is.
    fn told_apart(&self, pieces: &[&[Slot]]) -> bool {
        let integers = (0..self.range.0).flat_map(|integer| [(integer, ""), (integer, "-")]);
        let numbers: Vec<[String; 3]> = integers
            .flat_map(|(integer, sign)| {
                ["0000", "1111", "1414", "0990", "9019"].map(|d| [sign.into(), integer.to_string(), d.into()])
            })
            .collect();
        let plain = [String::new(), "0".to_owned(), "1040".to_owned()];
        (0..3).all(|axis| {
            numbers.iter().all(|number| {
                let mut block = vec!["<".to_owned()];
                for at in 0..3 {
                    let [sign, integer, decimals] = if at == axis { number } else { &plain };
                    block.extend([sign.clone(), integer.clone(), ".".to_owned()]);
                    block.extend(decimals.chars().map(String::from));
                    block.push(if at < 2 { "," } else { ">" }.to_owned());
                }
                let ends = self.starts.iter().skip(1).copied().chain([SLOTS]);
                self.starts.iter().zip(ends).skip(1).all(|(&start, end)| {
                    let rest = block[start..].concat();
                    let length = pieces.iter().find_map(|piece| matched(piece, &rest, self.range));
                    length == Some(block[start..end].concat().len())
                })
            })
        })
    }

    /// A block, with `|` where it is cut.
    pub fn example(&self) -> String {
        let filled =
            ["<", "-", "1", ".", "2", "3", "4", "5", ",", "", "6", ".", "7", "8", "9", "0", ",", "-"];
        let filled = filled.into_iter().chain(["0", ".", "1", "2", "3", "4", ">"]);
        let mut out = String::new();
        for (slot, text) in filled.enumerate() {
            if slot > 0 && self.starts.contains(&slot) {
                out.push('|');
            }
            out.push_str(text);
        }
        out
    }
}

/// How every cut pattern begins, by which an extended tokenizer is known.
pub const CUT_MARK: &str = "\\G(?:";

/// The expression of a row of slots.
fn pattern(slots: &[Slot], range: Range) -> String {
    let mut out = String::new();
    let mut slots = slots.iter().peekable();
    while let Some(slot) = slots.next() {
        match slot {
            Slot::Open => out.push('<'),
            Slot::Sign => out.push_str("-?"),
            Slot::Integer => out.push_str(&range.integers()),
            Slot::Point => out.push_str("\\."),
            Slot::Comma => out.push(','),
            Slot::Close => out.push('>'),
            Slot::Digit => {
                let mut digits = 1;
                while slots.next_if_eq(&&Slot::Digit).is_some() {
                    digits += 1;
                }
                out.push_str("[0-9]");
                if digits > 1 {
                    out.push_str(&format!("{{{digits}}}"));
                }
            }
        }
    }
    out
}

/// How many bytes of a text's beginning the expression of a row of slots takes.
fn matched(slots: &[Slot], text: &str, range: Range) -> Option<usize> {
    let Some((slot, rest)) = slots.split_first() else { return Some(0) };
    let then = |length: usize| Some(length + matched(rest, &text[length..], range)?);
    let literal = |literal: &str| if text.starts_with(literal) { then(literal.len()) } else { None };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match slot {
        Slot::Open => literal("<"),
        Slot::Sign => literal("-").or_else(|| then(0)),
        Slot::Integer => {
            let two = digits >= 2 && text[..2].parse().is_ok_and(|n: u32| (10..range.0).contains(&n));
            let one = digits >= 1 && text[..1].parse().is_ok_and(|n: u32| n < range.0);
            two.then(|| then(2)).flatten().or_else(|| one.then(|| then(1)).flatten())
        }
        Slot::Point => literal("."),
        Slot::Digit => (digits >= 1).then(|| then(1)).flatten(),
        Slot::Comma => literal(","),
        Slot::Close => literal(">"),
    }
}

/// How many strings a row of slots stands for.
pub fn size(slots: &[Slot], range: Range) -> u64 {
    slots.iter().fold(1, |size: u64, slot| {
        size.saturating_mul(match slot {
            Slot::Sign => 2,
            Slot::Integer => u64::from(range.0),
            Slot::Digit => 10,
            _ => 1,
        })
    })
}

/// Every string of a row of slots, in the order of its slots.
pub fn strings(slots: &[Slot], range: Range) -> Vec<String> {
    let mut all = vec![String::new()];
    for slot in slots {
        let options: Vec<String> = match slot {
            Slot::Open => vec!["<".into()],
            Slot::Sign => vec![String::new(), "-".into()],
            Slot::Integer => (0..range.0).map(|n| n.to_string()).collect(),
            Slot::Point => vec![".".into()],
            Slot::Digit => (0..10).map(|n| n.to_string()).collect(),
            Slot::Comma => vec![",".into()],
            Slot::Close => vec![">".into()],
        };
        all = all.iter().flat_map(|head| options.iter().map(move |tail| format!("{head}{tail}"))).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_say_what_strings_hold() {
        let integers = |angstrom| Range::new(angstrom).unwrap().integers();
        assert_eq!(integers(1), "[0-0]");
        assert_eq!(integers(10), "[0-9]");
        assert_eq!(integers(15), "(?:1[0-4]|[0-9])");
        assert_eq!(integers(20), "(?:1[0-9]|[0-9])");
        assert_eq!(integers(25), "(?:1[0-9]|2[0-4]|[0-9])");
        assert_eq!(integers(100), "(?:[1-8][0-9]|9[0-9]|[0-9])");
        assert!(Range::new(0).is_err() && Range::new(101).is_err());
    }

    #[test]
    fn a_block_has_the_slots_of_the_format() {
        let range = Range::new(15).unwrap();
        let scheme = Scheme { range, starts: vec![0, 4, 6, 8, 12, 14, 16, 20, 22] };
        assert_eq!(scheme.example(), "<-1.|23|45|,6.|78|90|,-0.|12|34>");
        assert_eq!(scheme.strings().len(), 30 + 100 + 30 + 100);
        assert_eq!(size(&BLOCK, range), range.numbers().pow(3));
        assert_eq!(
            scheme.block_pattern(),
            "<-?(?:1[0-4]|[0-9])\\.[0-9]{4},-?(?:1[0-4]|[0-9])\\.[0-9]{4},-?(?:1[0-4]|[0-9])\\.[0-9]{4}>"
        );
    }
}
