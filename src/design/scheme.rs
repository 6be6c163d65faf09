//! Schemes: how a block is cut into tokens.
//!
//! A block is a row of 25 *slots*: `<`, then three times sign, integer part, point and four decimals, with `,` between
//! and `>` at the end. A *scheme* cuts the row into pieces. A sign may be absent, so a piece that is a sign alone would
//! be missing from some blocks: no scheme has one. In the fixed dialect all other slots are never empty, hence every
//! block has as many pieces as the scheme, whatever its numbers are. In the stripped dialect a block lacks the slots of
//! the decimals that it does not write; where a number is cut depends on how many it has, and always into as many
//! pieces.

use std::collections::HashSet;

use serde::Serialize;

use super::grammar::{Grammar, MAX_DECIMALS};
use crate::error::{Error, Parameter, Result};

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
    /// A decimal that is not zero: the last one of the stripped dialect.
    Last,
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
        Err(Error::parameter(
            Parameter::Range,
            problem,
            "integer parts have one or two digits: give 1 to 100",
        ))
    }

    /// In Å.
    pub fn angstrom(self) -> u32 {
        self.0
    }

    /// A regular expression of the integer parts.
    pub fn integers(self) -> String {
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

/// Where the slots of blocks are cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    /// Blocks it is for.
    pub grammar: Grammar,
    /// First slots of pieces, by axis and decimals of its number.
    cuts: Cuts,
}

/// First slots of pieces, by axis and decimals of its number.
pub type Cuts = [[Vec<usize>; MAX_DECIMALS + 1]; 3];

impl Scheme {
    /// A scheme of the fixed dialect: the first slot of every piece, in order, beginning with 0.
    pub fn fixed(range: Range, starts: Vec<usize>) -> Self {
        let mut cuts = Cuts::default();
        cuts[0][MAX_DECIMALS] = starts;
        Scheme { grammar: Grammar::fixed(range), cuts }
    }

    /// A scheme whose cuts depend on decimals.
    pub fn stripped(grammar: Grammar, cuts: Cuts) -> Self {
        Scheme { grammar, cuts }
    }

    /// The first slots of the pieces that an axis adds to a block, if its number has as many decimals.
    pub fn cuts(&self, axis: usize, decimals: usize) -> &[usize] {
        &self.cuts[axis][decimals]
    }

    /// First slots of the pieces of a block whose numbers have these decimals, in order.
    pub fn starts(&self, decimals: [usize; 3]) -> Vec<usize> {
        (0..3).flat_map(|axis| self.cuts(axis, decimals[axis])).copied().collect()
    }

    /// Tokens of every block, brackets included.
    pub fn tokens_per_block(&self) -> usize {
        self.starts([MAX_DECIMALS; 3]).len()
    }

    /// The slots of each piece of a block whose numbers have these decimals.
    pub fn pieces(&self, decimals: [usize; 3]) -> Vec<Vec<Slot>> {
        let slots = self.grammar.slots(decimals);
        let starts = self.starts(decimals);
        let ends = starts.iter().skip(1).copied().chain([SLOTS]);
        starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| slots[start..end].iter().flatten().copied().collect())
            .collect()
    }

    /// Every token that a block can need, in order of first use, each once; blocks of more decimals come first.
    pub fn strings(&self) -> Vec<String> {
        let counts: Vec<usize> = self.grammar.counts().rev().collect();
        let shapes = counts.iter().flat_map(|&x| {
            let counts = &counts;
            counts.iter().flat_map(move |&y| counts.iter().map(move |&z| [x, y, z]))
        });
        let (mut rows, mut seen) = (HashSet::new(), HashSet::new());
        let mut all = Vec::new();
        for row in shapes.flat_map(|shape| self.pieces(shape)) {
            if rows.insert(row.clone()) {
                let new = strings(&row, self.grammar.range).into_iter();
                all.extend(new.filter(|string| seen.insert(string.clone())));
            }
        }
        all
    }

    /// A block of as many decimals in all its numbers, with `|` where it is cut.
    pub fn example(&self, decimals: usize) -> String {
        let filled =
            ["<", "-", "1", ".", "2", "3", "4", "5", ",", "", "6", ".", "7", "8", "9", "1", ",", "-"];
        let filled: Vec<&str> = filled.into_iter().chain(["0", ".", "1", "2", "3", "4", ">"]).collect();
        let starts = self.starts([decimals; 3]);
        let mut out = String::new();
        for (slot, known) in self.grammar.slots([decimals; 3]).iter().enumerate() {
            if slot > 0 && starts.contains(&slot) {
                out.push('|');
            }
            if known.is_some() {
                out.push_str(filled[slot]);
            }
        }
        out
    }

    /// Pieces that hold a bracket; as many in every block.
    pub fn brackets(&self) -> usize {
        let bracket = |slots: &&Vec<Slot>| slots.iter().any(|slot| matches!(slot, Slot::Open | Slot::Close));
        self.pieces([MAX_DECIMALS; 3]).iter().filter(bracket).count()
    }
}

/// The expression of a row of slots.
pub fn pattern(slots: &[Slot], range: Range) -> String {
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
            Slot::Last => out.push_str("[1-9]"),
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

/// How many strings a row of slots stands for.
pub fn size(slots: &[Slot], range: Range) -> u64 {
    slots.iter().fold(1, |size: u64, slot| {
        size.saturating_mul(match slot {
            Slot::Sign => 2,
            Slot::Integer => u64::from(range.0),
            Slot::Digit => 10,
            Slot::Last => 9,
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
            Slot::Last => (1..10).map(|n| n.to_string()).collect(),
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
        let scheme = Scheme::fixed(range, vec![0, 4, 6, 8, 12, 14, 16, 20, 22]);
        assert_eq!(scheme.example(4), "<-1.|23|45|,6.|78|91|,-0.|12|34>");
        assert_eq!((scheme.strings().len(), scheme.brackets()), (30 + 100 + 30 + 100, 2));
        assert_eq!(size(&BLOCK, range), Grammar::fixed(range).numbers().pow(3));
    }
}
