//! The design space of numbers that have all their digits, as in the fixed encoding and in bins: every scheme of a kind and range,
//! and its cost on top of a base vocabulary.
//!
//! The cost of a scheme is the number of strings in the union of its pieces that the base lacks. Unions are counted by *cells*,
//! which are classes of strings that every piece contains either completely or not at all. Two strings are in the same cell if they
//! differ only in their digits. Strings that consist only of digits can be decimals or an integer part, so they are also
//! distinguished by whether they can be an integer part. In any other string, the text around the digits shows what they are. If
//! each number of a block has its own bins, strings are also distinguished by which of the block's numbers they can be. Cells are
//! disjoint, so the cost of a union is the sum of its cells.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::cuts::{Scheme, SchemeKind, spans};
use super::grammar::Grammar;
use super::search::Landscape;
use super::slots::{BlockSlot, MOST_SLOTS, SlotRow};
use super::space::{BaseTokens, CellTable, Cells, MAX_NEW_TOKENS, Optimum};

/// The design space of numbers that have all their digits.
pub(crate) struct FixedSpace {
    grammar: Grammar,
    row: SlotRow,
    /// The first slots of pieces that are common to all schemes of the kind. A search never moves them.
    fixed_starts: Vec<usize>,
    /// For each cell, the number of strings that the base lacks.
    cells: Vec<u64>,
    /// The cells of each piece, by its first slot and the slot after its last; `None` if no scheme may have the piece.
    pieces: Vec<[Option<Cells>; MOST_SLOTS + 1]>,
}

impl FixedSpace {
    /// Counts the cells of every piece.
    pub(crate) fn new(kind: SchemeKind, grammar: Grammar, vocabulary: &impl BaseTokens) -> Self {
        let row = grammar.row();
        let mut fixed_starts = vec![0];
        if kind == SchemeKind::Separate {
            let opened = matches!(row[0], BlockSlot::Open(_)).then_some(1);
            let closed = matches!(row.last(), Some(BlockSlot::Close(_))).then(|| row.len() - 1);
            fixed_starts.extend(opened.into_iter().chain(closed));
            fixed_starts.dedup();
        }
        let mut table = CellTable::new(kind, vocabulary, |string: &str| cell(string, grammar));
        let mut cells = |slots: &[BlockSlot]| if slots.is_empty() { None } else { table.cells(slots) };
        let pieces_from = |start| std::array::from_fn(|end| row.get(start..end).and_then(&mut cells));
        let pieces = (0..row.len()).map(pieces_from).collect();
        FixedSpace { grammar, row, fixed_starts, pieces, cells: table.costs }
    }

    /// Returns the smallest and the largest number of tokens of schemes of this kind.
    pub(crate) fn tokens(&self) -> std::ops::RangeInclusive<usize> {
        self.fixed_starts.len().max(self.grammar.encoding().numbers())..=self.row.most_tokens()
    }

    /// Returns the number of new tokens of a scheme; `None` if the scheme is not in the space.
    pub(crate) fn cost(&self, starts: &[usize]) -> Option<u64> {
        let mut seen = vec![false; self.cells.len()];
        let mut cost = 0;
        for (start, end) in spans(starts, self.row.len()) {
            for &cell in self.pieces[start][end].as_ref()? {
                if !std::mem::replace(&mut seen[usize::from(cell)], true) {
                    cost += self.cells[usize::from(cell)];
                }
            }
        }
        Some(cost)
    }

    /// Returns the scheme with exactly `tokens` tokens that has the fewest new ones, if it has at most `limit`. The search is exhaustive:
    /// a branch is cut off only if it costs no less than the best scheme so far. Among equal costs, the fewest cells win, then the first
    /// in the order of cuts.
    pub(crate) fn optimum(&self, tokens: usize, limit: u64) -> Option<Optimum> {
        let mut walk = Walk {
            space: self,
            uses: vec![0; self.cells.len()],
            starts: Vec::with_capacity(tokens),
            best: Vec::new(),
            // A scheme must be below the bound, so the bound starts one above the limit.
            bound: (limit.saturating_add(1), 0),
        };
        walk.step(0, tokens, (0, 0));
        let found = !walk.best.is_empty();
        found.then_some(Optimum { scheme: Scheme::fixed(self.grammar, walk.best), new_tokens: walk.bound.0 })
    }

    /// For each number of tokens, the scheme that has the fewest new ones, if there is one.
    pub(crate) fn schemes(&self) -> Vec<Scheme> {
        let optima = self.tokens().filter_map(|tokens| self.optimum(tokens, MAX_NEW_TOKENS));
        optima.map(|optimum| optimum.scheme).collect()
    }
}

impl Landscape for FixedSpace {
    type Point = Vec<usize>;

    /// Cuts that are spread over the block as evenly as possible, in addition to those that the kind requires.
    fn start(&self, tokens: usize, _: &mut ChaCha8Rng) -> Option<Vec<usize>> {
        let slots = self.row.len();
        let mut starts = self.fixed_starts.clone();
        while starts.len() < tokens {
            starts.sort_unstable();
            let widest = spans(&starts, slots).max_by_key(|(start, end)| (end - start, slots - start));
            let (start, end) = widest.filter(|(start, end)| end - start > 1)?;
            starts.push((start + end) / 2);
        }
        starts.sort_unstable();
        Some(starts)
    }

    fn new_tokens(&self, starts: &Vec<usize>) -> Option<u64> {
        self.cost(starts)
    }

    /// Moves one cut that the kind does not require to a slot without a cut.
    fn neighbour(&self, starts: &Vec<usize>, random: &mut ChaCha8Rng) -> Vec<usize> {
        let mut next = starts.clone();
        let movable: Vec<usize> =
            (0..next.len()).filter(|at| !self.fixed_starts.contains(&next[*at])).collect();
        let free: Vec<usize> = (1..self.row.len()).filter(|slot| !next.contains(slot)).collect();
        if !movable.is_empty() && !free.is_empty() {
            let at = movable[random.random_range(0..movable.len())];
            // Half of the time a step to an adjacent slot, otherwise to any free slot.
            let near: Vec<usize> = free.iter().copied().filter(|slot| slot.abs_diff(next[at]) == 1).collect();
            let slots = if near.is_empty() || random.random_range(0..2) == 0 { &free } else { &near };
            next[at] = slots[random.random_range(0..slots.len())];
            next.sort_unstable();
        }
        next
    }
}

/// A depth-first walk over all schemes.
struct Walk<'s> {
    space: &'s FixedSpace,
    /// For each cell, the number of pieces of the current branch that use it.
    uses: Vec<u8>,
    starts: Vec<usize>,
    best: Vec<usize>,
    /// The numbers of new tokens and of cells that a scheme must stay below to be better.
    bound: (u64, usize),
}

impl Walk<'_> {
    /// Adds pieces starting at slot `start`. `left` pieces are still to come, and the previous ones cost `spent`.
    fn step(&mut self, start: usize, left: usize, spent: (u64, usize)) {
        let slots = self.space.row.len();
        if left == 0 {
            if start == slots && spent < self.bound {
                self.bound = spent;
                self.best.clone_from(&self.starts);
            }
            return;
        }
        let space = self.space;
        // Each remaining piece needs at least one slot, and the last one takes all remaining slots.
        let ends = if left == 1 { slots..=slots } else { start + 1..=slots - (left - 1) };
        for end in ends {
            let Some(cells) = &space.pieces[start][end] else { continue };
            let mut cost = spent;
            for &cell in cells {
                let cell = usize::from(cell);
                if self.uses[cell] == 0 {
                    cost = (cost.0 + space.cells[cell], cost.1 + 1);
                }
                self.uses[cell] += 1;
            }
            // A branch never gets cheaper, so it is abandoned if it costs as much as the best scheme so far.
            if cost < self.bound {
                self.starts.push(start);
                self.step(end, left - 1, cost);
                self.starts.pop();
            }
            cells.iter().for_each(|&cell| self.uses[usize::from(cell)] -= 1);
        }
    }
}

/// Returns the cell of a string.
fn cell(string: &str, grammar: Grammar) -> String {
    let mut mask: String = string.chars().map(|c| if c.is_ascii_digit() { 'd' } else { c }).collect();
    if grammar.encoding().is_decimal() {
        // Strings of only digits may be decimals or an integer part, and only some of them can be an integer part. All other
        // strings show what their digits are.
        let digits = mask.bytes().all(|b| b == b'd');
        let integer = |n: u32| n < grammar.range.angstrom() && n.to_string() == string;
        return if digits && string.parse().is_ok_and(integer) { format!("{mask}!") } else { mask };
    }
    // For each number in the string: how many axes it can belong to.
    let width = grammar.encoding().width().max(1);
    let axes = 0..grammar.encoding().numbers();
    let largest: Vec<u32> =
        axes.map(|axis| grammar.encoding().number().limits(axis).1.unsigned_abs()).collect();
    for run in string.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty()) {
        // Adjacent numbers have the same fixed width; any other number is a whole run of digits.
        let numbers = if run.len() % width == 0 { run.len() / width } else { 1 };
        let length = run.len() / numbers;
        for at in (0..numbers).map(|at| at * length) {
            let value: u32 = run[at..at + length].parse().unwrap_or(u32::MAX);
            let of = largest.iter().filter(|largest| value <= **largest).count();
            mask.push(char::from(b'0' + of as u8));
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::fixed_grammar;
    use crate::design::scheme::space::TestVocabulary;

    /// Returns the strings of a scheme's pieces that a base lacks, one by one.
    fn counted(scheme: &Scheme, base: &TestVocabulary) -> Option<u64> {
        let new = base.lacks(scheme);
        (!new.iter().any(|s| base.may_not_be_added(s))).then_some(new.len() as u64)
    }

    #[test]
    fn costs_are_unions_of_strings() {
        let base = TestVocabulary(&["<", ">", ",", ".", ",-", "7", "12", "007", "1."]);
        for (kind, angstrom, decimals) in [
            (SchemeKind::Fused, 15, 4),
            (SchemeKind::Separate, 8, 4),
            (SchemeKind::Fused, 100, 4),
            (SchemeKind::Fused, 15, 3),
            (SchemeKind::Separate, 12, 6),
        ] {
            let grammar = fixed_grammar(angstrom, decimals);
            let space = FixedSpace::new(kind, grammar, &base);
            let mut judged = 0;
            for seed in 0..1_000u64 {
                // A pseudo-random set of cuts, few enough to keep pieces small or many.
                let bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                let slots = 0..grammar.row().len();
                let starts: Vec<usize> = slots.filter(|slot| *slot == 0 || bits >> slot & 1 == 1).collect();
                let Some(cost) = space.cost(&starts) else { continue };
                let scheme = Scheme::fixed(grammar, starts);
                assert_eq!(Some(cost), counted(&scheme, &base), "{}", scheme.example(decimals));
                judged += 1;
            }
            assert!(judged > 20, "{judged}");
        }
    }

    #[test]
    fn the_walk_finds_what_brute_force_finds() {
        let base = TestVocabulary(&["<", ">", ",", ".", ",-", "0", "1"]);
        for (decimals, several) in [(4, [6, 8, 20, 21]), (3, [6, 9, 11, 18])] {
            let grammar = fixed_grammar(12, decimals);
            let slots = grammar.row().len();
            let space = FixedSpace::new(SchemeKind::Fused, grammar, &base);
            for tokens in several {
                let best = (0..1u32 << (slots - 1))
                    .filter(|cuts| cuts.count_ones() as usize == tokens - 1)
                    .filter_map(|cuts| {
                        let cut = |slot: &usize| *slot == 0 || cuts >> (slot - 1) & 1 == 1;
                        space.cost(&(0..slots).filter(cut).collect::<Vec<_>>())
                    })
                    .min();
                let found = space.optimum(tokens, u64::MAX).map(|optimum| {
                    assert_eq!(space.cost(&optimum.scheme.starts([decimals; 3])), Some(optimum.new_tokens));
                    assert_eq!(optimum.scheme.tokens_per_block(), tokens);
                    optimum.new_tokens
                });
                assert_eq!(found, best, "{tokens} tokens");
            }
            assert!(space.optimum(9, 3).is_none());
            let least = space.optimum(9, u64::MAX).map(|optimum| optimum.new_tokens).unwrap();
            assert!(space.optimum(9, least).is_some() && space.optimum(9, least - 1).is_none());
        }
    }
}
