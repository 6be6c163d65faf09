//! The slots of a block: the parts that no scheme cuts.
//!
//! A block is a row of slots, made of the rows of its encoding: of decimals `<`, then three times sign, integer part, point and
//! decimals, with `,` between and `>` at the end, 25 of them where numbers have four decimals; of bins one for each number and
//! for what opens, separates and closes them. A row of slots stands for strings: their expression, their number, and all of them.

use std::ops::Deref;

use serde::Serialize;

use crate::parameter;
use drift_core::encoding::parts::{self, SlotPart};
use drift_core::encoding::{Encoding, IntegersBelow, Precision};
use drift_core::error::{Error, Result};

/// A part of a block that no scheme cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockSlot {
    /// What opens a block: `<`
    Open(&'static str),
    /// `-` or nothing.
    Sign,
    /// A whole number: the integer part of a decimal, or all that an index, an integer or a code is.
    Number {
        /// It is smaller.
        below: u32,
        /// Digits at least, with leading zeros; 0 for numbers without them.
        width: u8,
    },
    /// `.`
    Point,
    /// One decimal.
    Digit,
    /// A decimal that is not zero: the last one of the stripped dialect.
    Last,
    /// What stands between two numbers: `,`
    Comma(&'static str),
    /// What closes a block: `>`
    Close(&'static str),
}

/// The most decimals that a number can have.
pub const MOST_DECIMALS: usize = Precision::MOST.decimals();

/// The most slots of a block.
pub const MOST_SLOTS: usize = 13 + 3 * MOST_DECIMALS;

/// The slots of every block whose numbers have all their decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRow {
    slots: [BlockSlot; MOST_SLOTS],
    length: usize,
    /// The first slot of each number.
    firsts: [usize; 3],
    axes: usize,
}

impl SlotRow {
    /// Of the blocks of an encoding; integer parts of decimals lie below `range`.
    pub fn new(encoding: Encoding, range: Range) -> Self {
        let mut row = SlotRow {
            // Any slot will do: what lies behind `length` is never read.
            slots: [BlockSlot::Point; MOST_SLOTS],
            length: 0,
            firsts: [0; 3],
            axes: encoding.numbers(),
        };
        row.push_text(encoding.open(), BlockSlot::Open);
        // Rows of a number differ in their decimals alone, and the last has all of them.
        for axis in 0..row.axes {
            row.firsts[axis] = row.length;
            let rows = encoding.number().rows(axis, IntegersBelow(range.angstrom()));
            for part in rows.last().into_iter().flatten() {
                row.push(match part {
                    SlotPart::Optional(_) => BlockSlot::Sign,
                    SlotPart::Integer { below } => BlockSlot::Number { below: *below, width: 0 },
                    SlotPart::Padded { below, width } => BlockSlot::Number { below: *below, width: *width },
                    SlotPart::Literal(_) => BlockSlot::Point,
                    SlotPart::Digit { .. } => BlockSlot::Digit,
                });
            }
            if axis + 1 < row.axes {
                row.push_text(encoding.separator(), BlockSlot::Comma);
            }
        }
        row.push_text(encoding.close(), BlockSlot::Close);
        row
    }

    fn push(&mut self, slot: BlockSlot) {
        self.slots[self.length] = slot;
        self.length += 1;
    }

    fn push_text(&mut self, text: &'static str, slot: fn(&'static str) -> BlockSlot) {
        if !text.is_empty() {
            self.push(slot(text));
        }
    }

    /// The first slot of a number: of a decimal, its sign. The slot before the one after is what ends it.
    pub fn first(&self, axis: usize) -> usize {
        self.firsts[axis]
    }

    /// The axis of a slot and its place there: of decimals sign, integer part, point, decimals, end. What opens a block has
    /// none.
    pub fn place(&self, slot: usize) -> (usize, usize) {
        match self.firsts[..self.axes].iter().rposition(|first| *first <= slot) {
            Some(axis) => (axis, slot - self.firsts[axis]),
            // No place of a number is as large, so callers that compare places pass over what opens a block.
            None => (0, usize::MAX),
        }
    }

    /// The most tokens that a block can have: a piece per slot, but signs.
    pub fn most_tokens(&self) -> usize {
        self.iter().filter(|slot| **slot != BlockSlot::Sign).count()
    }
}

impl Deref for SlotRow {
    type Target = [BlockSlot];

    fn deref(&self) -> &[BlockSlot] {
        &self.slots[..self.length]
    }
}

impl BlockSlot {
    /// As a part of an encoding's rows, which know their strings.
    fn part(self) -> SlotPart {
        match self {
            BlockSlot::Open(text) | BlockSlot::Comma(text) | BlockSlot::Close(text) => {
                SlotPart::Literal(text.into())
            }
            BlockSlot::Sign => SlotPart::Optional("-".into()),
            BlockSlot::Number { below, width: 0 } => SlotPart::Integer { below },
            BlockSlot::Number { below, width } => SlotPart::Padded { below, width },
            BlockSlot::Point => SlotPart::Literal(".".into()),
            BlockSlot::Digit => SlotPart::Digit { least: 0 },
            BlockSlot::Last => SlotPart::Digit { least: 1 },
        }
    }
}

fn parts_of(slots: &[BlockSlot]) -> Vec<SlotPart> {
    slots.iter().map(|slot| slot.part()).collect()
}

/// The expression of a row of slots.
pub fn pattern(slots: &[BlockSlot]) -> String {
    parts::expression(&parts_of(slots))
}

/// How many strings a row of slots stands for.
pub fn size(slots: &[BlockSlot]) -> u64 {
    parts::count(&parts_of(slots))
}

/// Every string of a row of slots, in the order of its slots.
pub fn strings(slots: &[BlockSlot]) -> Vec<String> {
    parts::strings(&parts_of(slots))
}

/// Numbers of a block lie below this in magnitude, in whole Å.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Range(u32);

impl Range {
    /// 15 Å: nearly all atoms of drug-like molecules.
    pub const USUAL: Range = Range(15);

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
            parameter::RANGE,
            problem,
            "integer parts have one or two digits: give 1 to 100",
        ))
    }

    /// In Å.
    pub fn angstrom(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_say_what_strings_hold() {
        let integers = |below| pattern(&[BlockSlot::Number { below, width: 0 }]);
        assert_eq!(integers(1), "[0-0]");
        assert_eq!(integers(10), "[0-9]");
        assert_eq!(integers(15), "(?:1[0-4]|[0-9])");
        assert_eq!(integers(20), "(?:1[0-9]|[0-9])");
        assert_eq!(integers(25), "(?:1[0-9]|2[0-4]|[0-9])");
        assert_eq!(integers(100), "(?:[1-8][0-9]|9[0-9]|[0-9])");
        assert!(Range::new(0).is_err() && Range::new(101).is_err());
    }
}
