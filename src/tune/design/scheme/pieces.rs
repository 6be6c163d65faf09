//! The pieces of a scheme as a table, which finds the string of each piece of a block by arithmetic.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::cuts::{Scheme, spans};
use super::grammar::Grammar;
use super::slots::{BlockSlot, MOST_SLOTS, strings};
use drift_core::encoding::Fixed;

/// The contents of the slots of one block: signs as 0 or 1, integer parts, and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotContents([u32; MOST_SLOTS]);

impl SlotContents {
    /// Returns the slots of a block; `None` if a number is outside the range.
    pub fn from_numbers(numbers: &[Fixed; 3], grammar: Grammar) -> Option<Self> {
        let (decimals, row) = (grammar.decimals(), grammar.row());
        let mut slots = [0; MOST_SLOTS];
        for (axis, number) in numbers.iter().enumerate() {
            // In the fixed encoding: sign, integer part, point and decimals. Without decimals there is no point.
            let first = row.first(axis);
            let mut left = number.unsigned_abs();
            for place in (0..decimals).rev() {
                slots[first + 3 + place] = left % 10;
                left /= 10;
            }
            if left >= grammar.range.angstrom() {
                return None;
            }
            slots[first] = u32::from(*number < 0);
            slots[first + 1] = left;
        }
        Some(SlotContents(slots))
    }
}

/// The pieces of a scheme as a table.
pub struct PieceTable {
    /// The grammar of the blocks that are cut.
    pub grammar: Grammar,
    /// Every string that a piece can be, each once.
    pub strings: Vec<String>,
    pieces: Vec<Piece>,
}

/// One piece: its slots with their numbers of options, and the index of the string for every combination of options.
struct Piece {
    slots: Vec<(usize, u32)>,
    strings: Vec<u32>,
}

impl PieceTable {
    /// Lists the strings of a scheme of the fixed encoding.
    pub(crate) fn from_scheme(scheme: &Scheme) -> Self {
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut all = Vec::new();
        let row = scheme.grammar.row();
        let pieces = spans(scheme.cuts(0, scheme.grammar.decimals()), row.len()).map(|(start, end)| {
            let options = (start..end).map(|slot| (slot, options(row[slot])));
            let strings = strings(&row[start..end]).into_iter().map(|string| {
                *known.entry(string).or_insert_with_key(|string| {
                    all.push(string.clone());
                    (all.len() - 1) as u32
                })
            });
            Piece { strings: strings.collect(), slots: options.filter(|(_, options)| *options > 1).collect() }
        });
        let pieces = pieces.collect();
        PieceTable { grammar: scheme.grammar, strings: all, pieces }
    }

    /// Returns the index of the string of each piece of a block.
    pub fn of_block<'p>(&'p self, block: &'p SlotContents) -> impl Iterator<Item = usize> + 'p {
        self.pieces.iter().map(|piece| {
            let code = piece.slots.iter().fold(0, |code, (slot, options)| code * options + block.0[*slot]);
            piece.strings[code as usize] as usize
        })
    }

    /// Returns the smallest and the largest number of tokens of any block in the range, if each string takes as many tokens as `lengths`
    /// states. The slots of different pieces are independent, so these are sums over pieces.
    pub fn extremes(&self, lengths: &[usize]) -> RangeInclusive<usize> {
        let (mut fewest, mut most) = (0, 0);
        for piece in &self.pieces {
            let lengths = piece.strings.iter().map(|string| lengths[*string as usize]);
            fewest += lengths.clone().min().unwrap_or(0);
            most += lengths.max().unwrap_or(0);
        }
        fewest..=most
    }
}

/// Returns the number of ways to fill a slot, in the order of [`strings`].
fn options(slot: BlockSlot) -> u32 {
    match slot {
        BlockSlot::Sign => 2,
        BlockSlot::Number { below, .. } => below,
        BlockSlot::Digit => 10,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::fixed_grammar;
    use drift_core::encoding::Encoding;
    use drift_core::text::{self};

    #[test]
    fn pieces_of_blocks_are_their_text() {
        let grammar = fixed_grammar(15, 4);
        for starts in [vec![0, 4, 6, 8, 12, 14, 16, 20, 22], (0..25).filter(|s| s % 8 != 1).collect()] {
            let table = PieceTable::from_scheme(&Scheme::fixed(grammar, starts.clone()));
            for numbers in [[0, -1, 10_000], [-149_999, 99_999, -100_000], [12_345, -67_890, 140_099]] {
                let filled = SlotContents::from_numbers(&numbers, grammar).unwrap();
                let pieces: Vec<&str> = table.of_block(&filled).map(|at| &*table.strings[at]).collect();
                assert_eq!(pieces.len(), starts.len());
                assert_eq!(
                    format!("[C]{}", pieces.concat()),
                    text::write("[C]<>", &[numbers], Encoding::FIXED)
                );
            }
            let ones = vec![1; table.strings.len()];
            assert_eq!(table.extremes(&ones), starts.len()..=starts.len());
        }
        assert_eq!(SlotContents::from_numbers(&[0, 0, -150_000], grammar), None);
    }

    #[test]
    fn numbers_of_other_decimals_have_units_of_their_own() {
        let numbers = [[0, -1, 10_000], [-14_999, 9_999, -10_000], [1_234, -6_789, 14_099]];
        let texts = ["<0.000,-0.001,10.000>", "<-14.999,9.999,-10.000>", "<1.234,-6.789,14.099>"];
        let grammar = fixed_grammar(15, 3);
        let table = PieceTable::from_scheme(&Scheme::fixed(grammar, vec![0, 4, 6, 7, 11, 13, 14, 18, 20]));
        for (numbers, text) in numbers.iter().zip(texts) {
            let filled = SlotContents::from_numbers(numbers, grammar).unwrap();
            assert_eq!(table.of_block(&filled).map(|at| &*table.strings[at]).collect::<String>(), text);
        }
        assert_eq!(SlotContents::from_numbers(&[0, 0, -15_000], grammar), None);
        let grammar = fixed_grammar(15, 0);
        let table = PieceTable::from_scheme(&Scheme::fixed(grammar, vec![0, 3, 6, 9]));
        for (numbers, text) in [([0, -1, 14], "<0,-1,14>"), ([-13, 2, -10], "<-13,2,-10>")] {
            let filled = SlotContents::from_numbers(&numbers, grammar).unwrap();
            assert_eq!(table.of_block(&filled).map(|at| &*table.strings[at]).collect::<String>(), text);
        }
        assert_eq!(SlotContents::from_numbers(&[0, 0, -15], grammar), None);
    }
}
