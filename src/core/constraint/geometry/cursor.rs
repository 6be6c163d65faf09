//! The place in a molecule's text that has been reached, byte by byte: which number of which slot is being written.

use crate::encoding::{Encoding, Fixed, is_of_number};
use crate::text::skeleton::placed;
use crate::text::{CONFORMER_CLOSE, CONFORMER_OPEN};

/// The longest number that is followed: a sign, 10 digits, a point and 6 decimals are fewer.
const MOST_DIGITS: usize = 20;

/// The fixed texts of a molecule, and how its numbers are written.
#[derive(Debug)]
pub(super) struct SlotText {
    pub encoding: Encoding,
    /// By slot, the text before its first number, from the last number of the slot before on.
    before: Vec<Box<[u8]>>,
    /// The number of slots of one conformer.
    pub atoms: usize,
}

impl SlotText {
    /// Returns the text of a skeleton with this many conformers. With `opened`, the opening tag belongs to the prompt.
    pub(super) fn new(skeleton: &str, encoding: Encoding, conformers: usize, opened: bool) -> Self {
        let skeleton = placed(skeleton, encoding.slots());
        let pieces: Vec<&str> = skeleton.split("<>").collect();
        let atoms = pieces.len() - 1;
        let mut before = Vec::with_capacity(atoms * conformers);
        for conformer in 0..conformers {
            for (at, piece) in pieces[..atoms].iter().enumerate() {
                let start = match (at, conformer) {
                    (0, 0) if opened => String::new(),
                    (0, 0) => CONFORMER_OPEN.to_owned(),
                    (0, _) => {
                        format!("{}{}{CONFORMER_CLOSE}{CONFORMER_OPEN}", encoding.close(), pieces[atoms])
                    }
                    _ => encoding.close().to_owned(),
                };
                before.push(format!("{start}{piece}{}", encoding.open()).into_bytes().into());
            }
        }
        SlotText { encoding, before, atoms }
    }

    /// Returns the number of slots, over all conformers.
    pub(super) fn slots(&self) -> usize {
        self.before.len()
    }

    /// Returns the fixed text before a number; `None` behind the last slot.
    fn before(&self, slot: usize, axis: usize) -> Option<&[u8]> {
        match axis {
            0 => self.before.get(slot).map(|text| &**text),
            _ => Some(self.encoding.separator().as_bytes()),
        }
    }
}

/// A number that has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrittenNumber {
    pub axis: usize,
    pub value: Fixed,
}

/// A place in the text of a molecule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    /// The slot, over all conformers, to whose text the next byte belongs.
    pub slot: usize,
    /// The number of the slot, 0 to 2.
    pub axis: usize,
    /// The numbers of the slot that have been written.
    pub values: [Fixed; 3],
    /// How many bytes of the fixed text before the number have been written.
    matched: usize,
    /// The beginning of the number.
    digits: [u8; MOST_DIGITS],
    length: usize,
}

impl Cursor {
    /// Returns the beginning of a text.
    pub(super) fn start() -> Self {
        Cursor { slot: 0, axis: 0, values: [0; 3], matched: 0, digits: [0; MOST_DIGITS], length: 0 }
    }

    /// Returns the beginning of the number that is being written; empty outside of numbers.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.digits[..self.length]
    }

    /// Returns whether it is at the place of another one.
    pub(super) fn is_at(&self, other: &Cursor) -> bool {
        let place = |one: &Cursor| (one.slot, one.axis, one.matched, one.length);
        place(self) == place(other)
    }

    /// Takes a byte. Returns the number that it ended, or completed if numbers end by themselves.
    pub(super) fn step(&mut self, byte: u8, text: &SlotText) -> Option<WrittenNumber> {
        let expected = text.before(self.slot, self.axis)?;
        if self.matched < expected.len() {
            // Some tokenizers write a space before the text, which belongs to nothing.
            self.matched += usize::from(expected[self.matched] == byte);
            return None;
        }
        if is_of_number(byte) && self.length < MOST_DIGITS {
            self.digits[self.length] = byte;
            self.length += 1;
            let encoding = text.encoding;
            let ends_by_itself = encoding.separator().is_empty() && self.length == encoding.width();
            return if ends_by_itself { self.end(text) } else { None };
        }
        let ended = self.end(text);
        // The byte belongs to the text behind the number.
        self.step(byte, text);
        ended
    }

    /// Ends the number.
    fn end(&mut self, text: &SlotText) -> Option<WrittenNumber> {
        let (axis, number) = (self.axis, text.encoding.number());
        let parsed = number.parse(self.prefix(), axis, true);
        (self.matched, self.length) = (0, 0);
        self.axis += 1;
        if self.axis == text.encoding.numbers() {
            (self.slot, self.axis) = (self.slot + 1, 0);
        }
        // The automaton allows no other numbers.
        let value = parsed.ok()?.value;
        self.values[axis] = value;
        Some(WrittenNumber { axis, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the numbers of a text, followed byte by byte.
    fn numbers(skeleton: &str, encoding: &str, text: &str, conformers: usize) -> Vec<(usize, usize, Fixed)> {
        let text_of = SlotText::new(skeleton, encoding.parse().unwrap(), conformers, false);
        let (mut cursor, mut found) = (Cursor::start(), Vec::new());
        for byte in text.bytes() {
            let slot = cursor.slot;
            found.extend(cursor.step(byte, &text_of).map(|n| (slot, n.axis, n.value)));
        }
        found
    }

    #[test]
    fn numbers_are_found_in_texts() {
        let found = numbers(
            "[C]<>1=[O+]<>",
            "fixed",
            " [CONFORMER][C]<-1.5000,0.0000,12.2500>1=[O+]<0.0001,-0.0000,3.0000>[/CONFORMER]",
            1,
        );
        let expected = [(0, 0, -15_000), (0, 1, 0), (0, 2, 122_500), (1, 0, 1), (1, 1, 0), (1, 2, 30_000)];
        assert_eq!(found, expected);
        // Numbers that end by themselves, followed by a ring number.
        let found = numbers(
            "[C]<>1[C]<>1",
            "binned-v2:-13,13,0.104",
            "[CONFORMER][C]111125145;1[C]001002003;1[/CONFORMER]",
            1,
        );
        assert_eq!(found.iter().map(|n| n.2).collect::<Vec<_>>(), [111, 125, 145, 1, 2, 3]);
        let two = "[CONFORMER][C]<1,2,3>[/CONFORMER][CONFORMER][C]<4,5,6.5>[/CONFORMER]";
        let found = numbers("[C]<>", "stripped-1", two, 2);
        assert_eq!(
            found.iter().map(|n| (n.0, n.2)).collect::<Vec<_>>(),
            [(0, 10), (0, 20), (0, 30), (1, 40), (1, 50), (1, 65)]
        );
    }
}
