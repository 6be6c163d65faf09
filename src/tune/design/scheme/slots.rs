//! The slots of a block: the parts that no scheme cuts.
//!
//! A block is a row of slots, which follows from its encoding. For decimals, it is `<`, then three times sign, integer part, point
//! and decimals, with `,` in between and `>` at the end: 25 slots for four decimals. For bins, it is one slot for each number and
//! for the opening, separating and closing characters. A row of slots represents a set of strings; this module gives their
//! expression, their number, and all of them.

use std::ops::Deref;

use serde::Serialize;

use crate::parameter;
use drift_core::encoding::parts::{self, SlotPart};
use drift_core::encoding::{IntegersBelow, Precision};
use drift_core::{Encoding, Error, Result};

/// A part of a block that no scheme cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockSlot {
    /// The opening character: `<`
    Open(&'static str),
    /// `-` or nothing.
    Sign,
    /// An integer: the integer part of a decimal, or a whole index, integer or code.
    Number {
        /// The number is below this.
        below: u32,
        /// The smallest number of digits, with leading zeros; 0 for numbers without leading zeros.
        width: u8,
    },
    /// `.`
    Point,
    /// One decimal.
    Digit,
    /// A decimal that is not zero: the last decimal in the stripped encoding.
    Last,
    /// The separator between two numbers: `,`
    Comma(&'static str),
    /// The closing character: `>`
    Close(&'static str),
}

/// The largest number of decimals of a number.
pub(crate) const MOST_DECIMALS: usize = Precision::MOST.decimals();

/// The largest number of slots of a block.
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
    /// Returns the row for blocks of an encoding. Integer parts of decimals are below `range`.
    pub fn new(encoding: Encoding, range: Range) -> Self {
        let mut row = SlotRow {
            // Any slot will do: slots beyond `length` are never read.
            slots: [BlockSlot::Point; MOST_SLOTS],
            length: 0,
            firsts: [0; 3],
            axes: encoding.numbers(),
        };
        row.push_text(encoding.open(), BlockSlot::Open);
        // The rows of a number differ only in their decimals, and the last row has all of them.
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

    /// Returns the first slot of a number: for a decimal, its sign. The slot before the next number's first slot is the separator.
    pub fn first(&self, axis: usize) -> usize {
        self.firsts[axis]
    }

    /// Returns the axis of a slot and its place within the number: for decimals sign, integer part, point, decimals, end. The opening
    /// slot belongs to no number.
    pub fn place(&self, slot: usize) -> (usize, usize) {
        match self.firsts[..self.axes].iter().rposition(|first| *first <= slot) {
            Some(axis) => (axis, slot - self.firsts[axis]),
            // No place within a number is this large, so callers that compare places skip the opening slot.
            None => (0, usize::MAX),
        }
    }

    /// Returns the largest number of tokens of a block: one piece per slot, except for signs.
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
    /// Returns the slot as a part of an encoding's rows, which know their strings.
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

/// Returns the expression of a row of slots.
pub fn pattern(slots: &[BlockSlot]) -> String {
    parts::expression(&parts_of(slots))
}

/// Returns the number of strings that a row of slots represents.
pub fn size(slots: &[BlockSlot]) -> u64 {
    parts::count(&parts_of(slots))
}

/// Returns every string that a row of slots represents, in the order of its slots.
pub fn strings(slots: &[BlockSlot]) -> Vec<String> {
    parts::strings(&parts_of(slots))
}

/// The range: the numbers of a block are below this magnitude, in whole Å.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Range(u32);

impl Range {
    /// 15 Å, which includes nearly all atoms of drug-like molecules.
    pub(crate) const USUAL: Range = Range(15);

    /// Returns a range of 1 to 100 Å. The format has integer parts of at most two digits.
    ///
    /// # Errors
    /// If the range is not within 1 to 100 Å.
    pub fn new(angstrom: u32) -> Result<Self> {
        if (1..=100).contains(&angstrom) {
            return Ok(Range(angstrom));
        }
        let problem = format!("the format cannot hold a range of {angstrom} Å");
        let remedy = "integer parts have one or two digits: give 1 to 100";
        Err(Error::parameter(parameter::RANGE, problem, remedy))
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
