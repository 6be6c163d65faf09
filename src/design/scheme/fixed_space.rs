//! The design space of the fixed dialect: every scheme of a kind and range, and what each costs on top of a base vocabulary.
//!
//! The cost of a scheme is the number of strings in the union of its pieces that the base lacks. Unions are counted by
//! *cells*: classes of strings that every piece holds wholly or not at all. Two strings are in one cell if they are
//! equal but for their digits; strings of digits alone, which may be decimals or an integer part, are told apart by
//! whether an integer part can be spelled so. What stands before or after the digits of any other string says what
//! they are. Cells are disjoint, so the cost of a union is the sum of its cells.

use std::collections::HashMap;

use super::cuts::{Scheme, SchemeKind};
use super::slots::{BLOCK, BlockSlot, MAX_TOKENS, Range, SLOTS, size, strings};
use super::space::{BaseTokens, FORBIDDEN, MAX_NEW_TOKENS, Optimum};

/// See the module's documentation.
pub struct FixedSpace {
    kind: SchemeKind,
    range: Range,
    /// New strings of each cell.
    cells: Vec<u64>,
    /// The cells of each piece, by first slot and slot after the last; `None` if no scheme may have it.
    pieces: Vec<[Option<Vec<u16>>; SLOTS + 1]>,
}

impl FixedSpace {
    /// Counts the cells of every piece.
    pub fn new(kind: SchemeKind, range: Range, vocabulary: &impl BaseTokens) -> Self {
        let mut space = FixedSpace { kind, range, cells: Vec::new(), pieces: Vec::new() };
        let mut ids: HashMap<String, u16> = HashMap::new();
        let mut known: HashMap<&[BlockSlot], Option<Vec<u16>>> = HashMap::new();
        for start in 0..SLOTS {
            let mut row: [Option<Vec<u16>>; SLOTS + 1] = std::array::from_fn(|_| None);
            for end in start + 1..=SLOTS {
                let slots = &BLOCK[start..end];
                let cells = known.entry(slots).or_insert_with(|| space.cells_of(slots, &mut ids, vocabulary));
                row[end].clone_from(cells);
            }
            space.pieces.push(row);
        }
        space
    }

    fn cells_of(
        &mut self,
        slots: &[BlockSlot],
        ids: &mut HashMap<String, u16>,
        vocabulary: &impl BaseTokens,
    ) -> Option<Vec<u16>> {
        if !self.kind.allows(slots) || size(slots, self.range) > MAX_NEW_TOKENS {
            return None;
        }
        let mut counted: HashMap<String, u64> = HashMap::new();
        for string in strings(slots, self.range) {
            let cost = match (vocabulary.holds(&string), vocabulary.may_not_be_added(&string)) {
                (true, _) => 0,
                (false, false) => 1,
                (false, true) => FORBIDDEN,
            };
            *counted.entry(cell(&string, self.range)).or_default() += cost;
        }
        let mut cells: Vec<u16> = counted
            .into_iter()
            .map(|(key, cost)| {
                *ids.entry(key).or_insert_with(|| {
                    self.cells.push(cost);
                    (self.cells.len() - 1) as u16
                })
            })
            .collect();
        cells.sort_unstable();
        Some(cells)
    }

    /// The first slots of pieces that every scheme of the kind has in common are never moved by a search.
    pub fn fixed_starts(&self) -> &'static [usize] {
        match self.kind {
            SchemeKind::Separate => &[0, 1, SLOTS - 1],
            SchemeKind::Fused => &[0],
        }
    }

    /// The fewest and the most tokens that schemes of this kind can have.
    pub fn tokens(&self) -> std::ops::RangeInclusive<usize> {
        self.fixed_starts().len().max(3)..=MAX_TOKENS
    }

    /// New tokens of a scheme; `None` if it is not in the space.
    pub fn cost(&self, starts: &[usize]) -> Option<u64> {
        let ends = starts.iter().skip(1).copied().chain([SLOTS]);
        let mut seen = vec![false; self.cells.len()];
        let mut cost = 0;
        for (&start, end) in starts.iter().zip(ends) {
            for &cell in self.pieces[start][end].as_ref()? {
                if !std::mem::replace(&mut seen[usize::from(cell)], true) {
                    cost += self.cells[usize::from(cell)];
                }
            }
        }
        (cost < FORBIDDEN).then_some(cost)
    }

    /// The scheme of exactly `tokens` tokens with the fewest new ones, of those with at most `limit`; exhaustive:
    /// branches are cut off only where they cost more than a scheme already found. Ties go to the fewest cells, then to
    /// the first in the order of cuts.
    pub fn optimum(&self, tokens: usize, limit: u64) -> Option<Optimum> {
        let mut walk = Walk {
            space: self,
            uses: vec![0; self.cells.len()],
            starts: Vec::with_capacity(tokens),
            best: Vec::new(),
            bound: (limit.min(FORBIDDEN - 1) + 1, 0),
        };
        walk.step(0, tokens, (0, 0));
        let found = !walk.best.is_empty();
        found.then_some(Optimum { scheme: Scheme::fixed(self.range, walk.best), new_tokens: walk.bound.0 })
    }
}

/// A depth-first walk over all schemes.
struct Walk<'s> {
    space: &'s FixedSpace,
    /// How many pieces of the current branch use each cell.
    uses: Vec<u8>,
    starts: Vec<usize>,
    best: Vec<usize>,
    /// New tokens and cells that a scheme must stay below to be better.
    bound: (u64, usize),
}

impl Walk<'_> {
    /// Puts pieces from slot `start` on; `left` are still to come, the ones before cost `spent`.
    fn step(&mut self, start: usize, left: usize, spent: (u64, usize)) {
        if left == 0 {
            if start == SLOTS && spent < self.bound {
                self.bound = spent;
                self.best.clone_from(&self.starts);
            }
            return;
        }
        let space = self.space;
        let ends = if left == 1 { SLOTS..=SLOTS } else { start + 1..=SLOTS - (left - 1) };
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
            if cost < self.bound {
                self.starts.push(start);
                self.step(end, left - 1, cost);
                self.starts.pop();
            }
            cells.iter().for_each(|&cell| self.uses[usize::from(cell)] -= 1);
        }
    }
}

/// The cell of a string.
fn cell(string: &str, range: Range) -> String {
    let mask: String = string.chars().map(|c| if c.is_ascii_digit() { 'd' } else { c }).collect();
    let digits = mask.bytes().all(|b| b == b'd');
    let integer = |n: u32| n < range.angstrom() && n.to_string() == string;
    if digits && string.parse().is_ok_and(integer) { format!("{mask}!") } else { mask }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// A base with these tokens.
    struct Known(HashSet<&'static str>);

    impl BaseTokens for Known {
        fn holds(&self, string: &str) -> bool {
            self.0.contains(string)
        }
        fn may_not_be_added(&self, string: &str) -> bool {
            string == "<-"
        }
    }

    /// The strings of a scheme's pieces that a base lacks, one by one.
    fn counted(scheme: &Scheme, base: &Known) -> Option<u64> {
        let new: Vec<String> = scheme.strings().into_iter().filter(|s| !base.holds(s)).collect();
        (!new.iter().any(|s| base.may_not_be_added(s))).then_some(new.len() as u64)
    }

    #[test]
    fn costs_are_unions_of_strings() {
        let base = Known(["<", ">", ",", ".", ",-", "7", "12", "007", "1."].into_iter().collect());
        for (kind, angstrom) in [(SchemeKind::Fused, 15), (SchemeKind::Separate, 8), (SchemeKind::Fused, 100)]
        {
            let range = Range::new(angstrom).unwrap();
            let space = FixedSpace::new(kind, range, &base);
            let mut judged = 0;
            for seed in 0..4_000u64 {
                // A pseudo-random set of cuts, few enough to keep pieces small or many.
                let bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
                let starts: Vec<usize> =
                    (0..SLOTS).filter(|slot| *slot == 0 || bits >> slot & 1 == 1).collect();
                let Some(cost) = space.cost(&starts) else { continue };
                let scheme = Scheme::fixed(range, starts);
                assert_eq!(Some(cost), counted(&scheme, &base), "{}", scheme.example(4));
                judged += 1;
            }
            assert!(judged > 20, "{judged}");
        }
    }

    #[test]
    fn the_walk_finds_what_brute_force_finds() {
        let base = Known(["<", ">", ",", ".", ",-", "0", "1"].into_iter().collect());
        let space = FixedSpace::new(SchemeKind::Fused, Range::new(12).unwrap(), &base);
        for tokens in [6, 8, 20, 21] {
            let best = (0..1u32 << (SLOTS - 1))
                .filter(|cuts| cuts.count_ones() as usize == tokens - 1)
                .filter_map(|cuts| {
                    let starts: Vec<usize> =
                        (0..SLOTS).filter(|slot| *slot == 0 || cuts >> (slot - 1) & 1 == 1).collect();
                    space.cost(&starts)
                })
                .min();
            let found = space.optimum(tokens, u64::MAX).map(|optimum| {
                assert_eq!(space.cost(&optimum.scheme.starts([4; 3])), Some(optimum.new_tokens));
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
