//! Schemes: how blocks are cut into tokens.
//!
//! A block is a row of *slots*: `<`, then three times sign, integer part, point and decimals, with `,` in between and `>` at the
//! end. A *scheme* cuts the row into pieces. A sign may be absent, so a piece with only a sign would be missing from some blocks,
//! and no scheme has such a piece. In the fixed encoding all other slots are never empty, so every block has as many pieces as the
//! scheme, whatever its numbers are. In the stripped encoding a block lacks the slots of decimals that are not written. There the
//! cuts of a number depend on its number of decimals, but the number of pieces is always the same.

use std::collections::HashSet;

use serde::Serialize;

use super::grammar::Grammar;
use super::slots::{BlockSlot, MOST_DECIMALS, strings};

/// Which texts a piece may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemeKind {
    /// No token mixes a bracket with anything: a position template can tell FREE from COPY
    Separate,
    /// Brackets may share a token with digits: fewest tokens, for a logit processor that follows the text
    Fused,
}

drift_core::named!(SchemeKind { Separate: "separate", Fused: "fused" });

impl SchemeKind {
    /// Returns whether a piece with these slots is allowed.
    pub fn allows(self, slots: &[BlockSlot]) -> bool {
        // A sign may be absent, so a piece with only a sign would be missing from some blocks.
        slots != [BlockSlot::Sign] && (self == SchemeKind::Fused || !has_bracket(slots) || slots.len() == 1)
    }
}

fn has_bracket(slots: &[BlockSlot]) -> bool {
    slots.iter().any(|slot| matches!(slot, BlockSlot::Open(_) | BlockSlot::Close(_)))
}

/// Returns the pieces that begin at `starts`, each from its start to the start of the next; the last one ends at `end`.
pub(in crate::design) fn spans(starts: &[usize], end: usize) -> impl Iterator<Item = (usize, usize)> {
    starts.iter().copied().zip(starts.iter().skip(1).copied().chain([end]))
}

/// The positions at which the slots of blocks are cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    /// The grammar of the blocks.
    pub grammar: Grammar,
    /// The first slots of pieces, by axis and number of decimals.
    cuts: SchemeCuts,
}

/// The first slots of pieces, by axis and number of decimals.
pub(crate) type SchemeCuts = [[Vec<usize>; MOST_DECIMALS + 1]; 3];

impl Scheme {
    /// Returns a scheme for a grammar whose numbers have all their digits. `starts` is the first slot of every piece, in order, beginning
    /// with 0.
    pub fn fixed(grammar: Grammar, starts: Vec<usize>) -> Self {
        let mut cuts = SchemeCuts::default();
        // All cuts are stored under the first axis: if numbers have all their digits, no cut depends on a number.
        cuts[0][grammar.decimals()] = starts;
        Scheme { grammar, cuts }
    }

    /// Returns the scheme for such a grammar with a cut before every slot that may begin a piece.
    pub(crate) fn finest(grammar: Grammar) -> Self {
        let row = grammar.row();
        // A sign is never a piece on its own.
        let starts = (0..row.len()).filter(|slot| *slot == 0 || row[slot - 1] != BlockSlot::Sign);
        Scheme::fixed(grammar, starts.collect())
    }

    /// Returns a scheme whose cuts depend on the number of decimals.
    pub fn stripped(grammar: Grammar, cuts: SchemeCuts) -> Self {
        Scheme { grammar, cuts }
    }

    /// Returns the first slots of the pieces that an axis contributes to a block, if its number has `decimals` decimals.
    pub fn cuts(&self, axis: usize, decimals: usize) -> &[usize] {
        &self.cuts[axis][decimals]
    }

    /// Returns the first slots of the pieces of a block whose numbers have these decimals, in order.
    pub fn starts(&self, decimals: [usize; 3]) -> Vec<usize> {
        (0..3).flat_map(|axis| self.cuts(axis, decimals[axis])).copied().collect()
    }

    /// Separate if no token of any block mixes a bracket with anything, whichever kind was asked for.
    pub fn kind(&self) -> SchemeKind {
        let mut pieces = self.grammar.counts().flat_map(|decimals| self.pieces([decimals; 3]));
        match pieces.all(|piece| SchemeKind::Separate.allows(&piece)) {
            true => SchemeKind::Separate,
            false => SchemeKind::Fused,
        }
    }

    /// Returns the number of tokens of every block, including brackets.
    pub fn tokens_per_block(&self) -> usize {
        self.starts([self.grammar.decimals(); 3]).len()
    }

    /// Returns the slots of each piece of a block whose numbers have these decimals.
    pub fn pieces(&self, decimals: [usize; 3]) -> Vec<Vec<BlockSlot>> {
        let slots = self.grammar.slots(decimals);
        spans(&self.starts(decimals), self.grammar.row().len())
            .map(|(start, end)| slots[start..end].iter().flatten().copied().collect())
            .collect()
    }

    /// Returns every token that a block can need, once each, in order of first use. Blocks with more decimals come first.
    pub fn strings(&self) -> Vec<String> {
        // New tokens get ids in this order, so it must be the same in every run.
        let counts: Vec<usize> = self.grammar.counts().rev().collect();
        let pairs = counts.iter().flat_map(|x| counts.iter().map(move |y| (*x, *y)));
        let shapes = pairs.flat_map(|(x, y)| counts.iter().map(move |z| [x, y, *z]));
        let (mut rows, mut seen) = (HashSet::new(), HashSet::new());
        let mut all = Vec::new();
        for row in shapes.flat_map(|shape| self.pieces(shape)) {
            if rows.insert(row.clone()) {
                let new = strings(&row).into_iter();
                all.extend(new.filter(|string| seen.insert(string.clone())));
            }
        }
        all
    }

    /// Returns a block in which all numbers have `decimals` decimals, with `|` at the cuts.
    pub fn example(&self, decimals: usize) -> String {
        // Numbers with signs, distinct digits and no trailing zero, so that every slot is visible.
        let numbers = [("-", 1, "234567"), ("", 6, "789123"), ("-", 0, "123456")];
        let starts = self.starts([decimals; 3]);
        let mut out = String::new();
        let row = self.grammar.row();
        for (at, slot) in self.grammar.slots([decimals; 3]).iter().enumerate() {
            if at > 0 && starts.contains(&at) {
                out.push('|');
            }
            let Some(slot) = slot else { continue };
            let (axis, place) = row.place(at);
            let (sign, integer, digits) = numbers[axis];
            match slot {
                BlockSlot::Open(text) | BlockSlot::Comma(text) | BlockSlot::Close(text) => out.push_str(text),
                BlockSlot::Sign => out.push_str(sign),
                BlockSlot::Number { width: 0, .. } => out.push_str(&integer.to_string()),
                BlockSlot::Number { below, width } => {
                    let value = [390, 7, 126][axis] % below;
                    out.push_str(&format!("{value:0width$}", width = usize::from(*width)));
                }
                BlockSlot::Point => out.push('.'),
                BlockSlot::Digit | BlockSlot::Last => out.push_str(&digits[place - 3..place - 2]),
            }
        }
        out
    }

    /// Returns the number of pieces that contain a bracket, which is the same for every block.
    pub fn brackets(&self) -> usize {
        self.pieces([self.grammar.decimals(); 3]).iter().filter(|piece| has_bracket(piece)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::fixed_grammar;
    use crate::design::scheme::slots::size;

    #[test]
    fn a_block_has_the_slots_of_the_format() {
        let scheme = Scheme::fixed(fixed_grammar(15, 4), vec![0, 4, 6, 8, 12, 14, 16, 20, 22]);
        assert_eq!(scheme.example(4), "<-1.|23|45|,6.|78|91|,-0.|12|34>");
        assert_eq!((scheme.strings().len(), scheme.brackets()), (30 + 100 + 30 + 100, 2));
        let scheme = Scheme::fixed(fixed_grammar(15, 3), vec![0, 4, 6, 7, 11, 13, 14, 18, 20]);
        assert_eq!(scheme.example(3), "<-1.|23|4|,6.|78|9|,-0.|12|3>");
        for decimals in 1..=MOST_DECIMALS {
            let grammar = fixed_grammar(15, decimals);
            assert_eq!(size(&grammar.row()), grammar.numbers().saturating_pow(3));
            assert_eq!(Scheme::finest(grammar).tokens_per_block(), grammar.row().most_tokens());
        }
        assert_eq!(
            Scheme::finest(fixed_grammar(15, 4)).example(4),
            "<|-1|.|2|3|4|5|,|6|.|7|8|9|1|,|-0|.|1|2|3|4|>"
        );
    }
}
