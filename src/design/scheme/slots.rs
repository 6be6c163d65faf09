//! The slots of a block: the parts that no scheme cuts.
//!
//! A block is a row of slots: `<`, then three times sign, integer part, point and decimals, with `,` between and `>` at the
//! end; 25 of them where numbers have four decimals. A row of slots stands for strings: their expression, their number, and
//! all of them.

use std::ops::Deref;

use serde::Serialize;

use crate::encoding::Precision;
use crate::error::{Error, Parameter, Result};

/// A part of a block that no scheme cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockSlot {
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

/// The most decimals that a number can have.
pub const MOST_DECIMALS: usize = Precision::MOST.decimals();

/// The most slots of a block.
pub const MOST_SLOTS: usize = 13 + 3 * MOST_DECIMALS;

/// The slots of every block whose numbers have so many decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRow {
    slots: [BlockSlot; MOST_SLOTS],
    decimals: usize,
}

impl SlotRow {
    /// Of numbers of `decimals` decimals, at most [`MOST_DECIMALS`].
    pub fn of(decimals: usize) -> Self {
        let mut row = SlotRow { slots: [BlockSlot::Digit; MOST_SLOTS], decimals };
        row.slots[0] = BlockSlot::Open;
        for axis in 0..3 {
            let first = row.first(axis);
            row.slots[first] = BlockSlot::Sign;
            row.slots[first + 1] = BlockSlot::Integer;
            row.slots[first + 2] = BlockSlot::Point;
            row.slots[first + 3 + decimals] = if axis < 2 { BlockSlot::Comma } else { BlockSlot::Close };
        }
        row
    }

    /// The first slot of a number, its sign. The slot before the one after is what ends it.
    pub fn first(&self, axis: usize) -> usize {
        1 + axis * (4 + self.decimals)
    }

    /// The axis of a slot and its place there: sign, integer part, point, decimals, end. `<` has none.
    pub fn place(&self, slot: usize) -> (usize, usize) {
        match slot {
            0 => (0, usize::MAX),
            _ => ((slot - 1) / (4 + self.decimals), (slot - 1) % (4 + self.decimals)),
        }
    }

    /// The most tokens that a block can have: a piece per slot, but signs.
    pub fn most_tokens(&self) -> usize {
        self.len() - 3
    }
}

impl Deref for SlotRow {
    type Target = [BlockSlot];

    fn deref(&self) -> &[BlockSlot] {
        &self.slots[..13 + 3 * self.decimals]
    }
}

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

/// The expression of a row of slots.
pub fn pattern(slots: &[BlockSlot], range: Range) -> String {
    let mut out = String::new();
    let mut slots = slots.iter().peekable();
    while let Some(slot) = slots.next() {
        match slot {
            BlockSlot::Open => out.push('<'),
            BlockSlot::Sign => out.push_str("-?"),
            BlockSlot::Integer => out.push_str(&range.integers()),
            BlockSlot::Point => out.push_str("\\."),
            BlockSlot::Comma => out.push(','),
            BlockSlot::Close => out.push('>'),
            BlockSlot::Last => out.push_str("[1-9]"),
            BlockSlot::Digit => {
                let mut digits = 1;
                while slots.next_if_eq(&&BlockSlot::Digit).is_some() {
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
pub fn size(slots: &[BlockSlot], range: Range) -> u64 {
    slots.iter().fold(1, |size: u64, slot| {
        size.saturating_mul(match slot {
            BlockSlot::Sign => 2,
            BlockSlot::Integer => u64::from(range.0),
            BlockSlot::Digit => 10,
            BlockSlot::Last => 9,
            _ => 1,
        })
    })
}

/// Every string of a row of slots, in the order of its slots.
pub fn strings(slots: &[BlockSlot], range: Range) -> Vec<String> {
    let mut all = vec![String::new()];
    for slot in slots {
        let options: Vec<String> = match slot {
            BlockSlot::Open => vec!["<".into()],
            BlockSlot::Sign => vec![String::new(), "-".into()],
            BlockSlot::Integer => (0..range.0).map(|n| n.to_string()).collect(),
            BlockSlot::Point => vec![".".into()],
            BlockSlot::Digit => (0..10).map(|n| n.to_string()).collect(),
            BlockSlot::Last => (1..10).map(|n| n.to_string()).collect(),
            BlockSlot::Comma => vec![",".into()],
            BlockSlot::Close => vec![">".into()],
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
}
