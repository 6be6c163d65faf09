//! The pieces of a scheme as a table: which string each piece of a block is, found by arithmetic.

use std::collections::HashMap;

use super::cuts::Scheme;
use super::grammar::MAX_DECIMALS;
use super::slots::{BLOCK, BlockSlot, Range, SLOTS, strings};
use crate::text::Fixed;
use crate::text::number::UNITS_PER_ANGSTROM;

/// What stands in the slots of one block: signs as 0 or 1, integer parts, digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled([u32; SLOTS]);

impl Filled {
    /// The slots of a block; `None` if a number is beyond the range.
    pub fn of(numbers: &[Fixed; 3], range: Range) -> Option<Self> {
        let mut slots = [0; SLOTS];
        for (axis, number) in numbers.iter().enumerate() {
            let magnitude = number.unsigned_abs();
            let integer = magnitude / UNITS_PER_ANGSTROM.unsigned_abs();
            if integer >= range.angstrom() {
                return None;
            }
            let first = 1 + 8 * axis;
            slots[first] = u32::from(*number < 0);
            slots[first + 1] = integer;
            for (place, unit) in [1_000, 100, 10, 1].into_iter().enumerate() {
                slots[first + 3 + place] = magnitude / unit % 10;
            }
        }
        Some(Filled(slots))
    }
}

/// See the module's documentation.
pub struct PieceTable {
    /// Every string that a piece can be, each once.
    pub strings: Vec<String>,
    pieces: Vec<Piece>,
}

/// One piece: its slots with their number of options, and the index of the string for every choice of options.
struct Piece {
    slots: Vec<(usize, u32)>,
    strings: Vec<u32>,
}

impl PieceTable {
    /// Lists the strings of a scheme of the fixed dialect.
    pub fn of(scheme: &Scheme) -> Self {
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut all = Vec::new();
        let (range, starts) = (scheme.grammar.range, scheme.cuts(0, MAX_DECIMALS));
        let ends = starts.iter().skip(1).copied().chain([SLOTS]);
        let pieces = starts.iter().zip(ends).map(|(&start, end)| {
            let options = (start..end).map(|slot| (slot, options(BLOCK[slot], range)));
            let strings = strings(&BLOCK[start..end], range).into_iter().map(|string| {
                *known.entry(string).or_insert_with_key(|string| {
                    all.push(string.clone());
                    (all.len() - 1) as u32
                })
            });
            Piece { strings: strings.collect(), slots: options.filter(|(_, options)| *options > 1).collect() }
        });
        let pieces = pieces.collect();
        PieceTable { strings: all, pieces }
    }

    /// The index of the string of each piece of a block.
    pub fn of_block<'p>(&'p self, block: &'p Filled) -> impl Iterator<Item = usize> + 'p {
        self.pieces.iter().map(|piece| {
            let code = piece.slots.iter().fold(0, |code, (slot, options)| code * options + block.0[*slot]);
            piece.strings[code as usize] as usize
        })
    }

    /// The fewest and the most tokens of any block in the range, if each string takes as many as `lengths` says. Slots
    /// of different pieces are chosen freely, so these are sums over pieces.
    pub fn extremes(&self, lengths: &[usize]) -> (usize, usize) {
        self.pieces.iter().fold((0, 0), |(fewest, most), piece| {
            let of = || piece.strings.iter().map(|string| lengths[*string as usize]);
            (fewest + of().min().unwrap_or(0), most + of().max().unwrap_or(0))
        })
    }
}

/// How many ways there are to fill a slot, in the order of [`strings`].
fn options(slot: BlockSlot, range: Range) -> u32 {
    match slot {
        BlockSlot::Sign => 2,
        BlockSlot::Integer => range.angstrom(),
        BlockSlot::Digit => 10,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{self, Dialect};

    #[test]
    fn pieces_of_blocks_are_their_text() {
        let range = Range::new(15).unwrap();
        for starts in [vec![0, 4, 6, 8, 12, 14, 16, 20, 22], (0..SLOTS).filter(|s| s % 8 != 1).collect()] {
            let table = PieceTable::of(&Scheme::fixed(range, starts.clone()));
            for numbers in [[0, -1, 10_000], [-149_999, 99_999, -100_000], [12_345, -67_890, 140_099]] {
                let filled = Filled::of(&numbers, range).unwrap();
                let pieces: Vec<&str> = table.of_block(&filled).map(|at| &*table.strings[at]).collect();
                assert_eq!(pieces.len(), starts.len());
                assert_eq!(
                    format!("[C]{}", pieces.concat()),
                    text::write("[C]<>", &[numbers], Dialect::Fixed)
                );
            }
            let ones = vec![1; table.strings.len()];
            assert_eq!(table.extremes(&ones), (starts.len(), starts.len()));
        }
        assert_eq!(Filled::of(&[0, 0, -150_000], range), None);
    }
}
