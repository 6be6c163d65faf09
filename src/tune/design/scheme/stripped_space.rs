//! The design space of the stripped encoding, in which the cuts of a number depend on its number of decimals.
//!
//! Between each two numbers, a scheme has a position where every block is cut: before the comma, after it, or after the sign that
//! follows it. So a block is divided into three *units*, one for each number. For every number of decimals a unit has its own cuts,
//! but always the same number of pieces: shorter numbers have fewer digits and make up for them by cuts elsewhere, such as a point
//! on its own. Hence every block has the same number of pieces.
//!
//! The cost of a scheme is the number of strings in the union of its pieces that the base lacks, counted by cells as in
//! [`super::fixed_space`]. Two strings are in the same cell if they differ only in their digits, and if corresponding runs of
//! digits agree in two properties: whether the run can be an integer part, and whether it ends in zero, as the last decimal never
//! does.

use std::collections::{BTreeSet, HashMap};

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::cuts::{Scheme, SchemeCuts, SchemeKind, spans};
use super::grammar::Grammar;
use super::search::Landscape;
use super::slots::{BlockSlot, SlotRow};
use super::space::{BaseTokens, CellTable, Cells, Optimum};

/// One way to cut a unit whose number has a given number of decimals.
#[derive(Debug, Clone)]
struct Choice {
    starts: Vec<usize>,
    /// Without cells that cost nothing.
    cells: Cells,
}

/// The slots of a number and of the characters around it that are cut together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Unit {
    first: usize,
    /// The slot after its last.
    end: usize,
}

/// A unit that is cut into a number of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CutUnit {
    unit: Unit,
    pieces: usize,
}

/// The choices among which a scheme makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Group {
    unit: Unit,
    decimals: usize,
    pieces: usize,
}

/// Returns the possible units of each number: a block is cut before the comma, after it, or after the sign that follows it.
fn units(row: &SlotRow) -> [Vec<Unit>; 3] {
    let [y, z] = [1, 2].map(|axis| [0, 1, 2].map(|more| row.first(axis) - 1 + more));
    [units_between(&[0], &y), units_between(&y, &z), units_between(&z, &[row.len()])]
}

fn units_between(starts: &[usize], ends: &[usize]) -> Vec<Unit> {
    starts.iter().flat_map(|&first| ends.iter().map(move |&end| Unit { first, end })).collect()
}

/// The design space of the stripped encoding.
pub(crate) struct StrippedSpace {
    kind: SchemeKind,
    grammar: Grammar,
    /// For each cell, the number of strings that the base lacks.
    cells: Vec<u64>,
    choices: HashMap<Group, Vec<Choice>>,
    units: [Vec<Unit>; 3],
}

/// The units of a scheme.
pub(crate) type Frame = [CutUnit; 3];

/// A scheme in the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemePoint {
    frame: Frame,
    /// The index of a choice for each axis and number of decimals.
    picks: Vec<usize>,
}

impl StrippedSpace {
    /// Counts the cells of every piece.
    pub(crate) fn new(kind: SchemeKind, grammar: Grammar, vocabulary: &impl BaseTokens) -> Self {
        let units = units(&grammar.row());
        let range = grammar.range.angstrom();
        let mut table = CellTable::new(kind, vocabulary, |string: &str| cell(string, range));
        let mut all = HashMap::new();
        for &unit in units.iter().flatten() {
            for decimals in grammar.counts() {
                for choice in choices(&mut table, grammar, unit, decimals) {
                    let group = Group { unit, decimals, pieces: choice.starts.len() };
                    all.entry(group).or_insert_with(Vec::new).push(choice);
                }
            }
        }
        all.values_mut().for_each(without_supersets);
        StrippedSpace { kind, grammar, cells: table.costs, choices: all, units }
    }

    /// Returns the smallest and the largest number of tokens of schemes of this kind.
    pub(crate) fn tokens(&self) -> std::ops::RangeInclusive<usize> {
        // Three units and, in the separate kind, two brackets on their own.
        let fewest = if self.kind == SchemeKind::Separate { 5 } else { 3 };
        fewest..=self.grammar.most_tokens()
    }

    /// Returns every frame of schemes with `tokens` tokens that has choices for every number of decimals.
    fn frames(&self, tokens: usize) -> Vec<Frame> {
        let [xs, ys, zs] = &self.units;
        let mut frames = Vec::new();
        for (&x, &y) in xs.iter().flat_map(|x| ys.iter().map(move |y| (x, y))) {
            // Units fit together if one ends at the slot at which the next begins.
            let Some(&z) = zs.iter().find(|z| x.end == y.first && z.first == y.end) else { continue };
            for first in 1..tokens.saturating_sub(1) {
                for second in 1..tokens - first {
                    let pieces = [first, second, tokens - first - second];
                    let frame = [0, 1, 2].map(|axis| CutUnit { unit: [x, y, z][axis], pieces: pieces[axis] });
                    let whole = self.groups(&frame).all(|group| self.choices.contains_key(&group));
                    frames.extend(whole.then_some(frame));
                }
            }
        }
        frames
    }

    /// Returns the groups of choices of a frame, by axis, then by number of decimals.
    fn groups(&self, frame: &Frame) -> impl Iterator<Item = Group> {
        let counts = self.grammar.counts();
        frame
            .map(|CutUnit { unit, pieces }| {
                counts.clone().map(move |decimals| Group { unit, decimals, pieces })
            })
            .into_iter()
            .flatten()
    }

    /// Returns the scheme with exactly `tokens` tokens that has the fewest new ones, if it has at most `limit`. The search is exhaustive:
    /// a branch is cut off only if it cannot cost less than the best scheme so far. The first schemes are found greedily, by always
    /// making the cheapest choice.
    pub(crate) fn optimum(&self, tokens: usize, limit: u64) -> Option<Optimum> {
        let frames = self.frames(tokens);
        let mut walk = self.walk(limit.saturating_add(1));
        // A greedy pass over all frames comes first: a good bound cuts off most of the exhaustive pass.
        for greedy in [true, false] {
            walk.greedy = greedy;
            for frame in &frames {
                let groups: Vec<Vec<(usize, &Choice)>> =
                    self.groups(frame).map(|key| self.below(&key, walk.bound)).collect();
                if groups.iter().all(|group| !group.is_empty()) {
                    walk.step(&groups, &mut vec![None; groups.len()], 0, frame);
                }
            }
        }
        let new_tokens = walk.bound;
        walk.best.map(|point| Optimum { scheme: self.scheme(&point), new_tokens })
    }

    /// Returns a walk that has used no cell yet.
    fn walk(&self, bound: u64) -> Walk<'_> {
        Walk { space: self, uses: vec![false; self.cells.len()], best: None, bound, greedy: true }
    }

    /// Returns the choices of a group that cost less than `bound`, with their indices.
    fn below(&self, group: &Group, bound: u64) -> Vec<(usize, &Choice)> {
        self.choices[group].iter().enumerate().filter(|(_, choice)| self.sum(&choice.cells) < bound).collect()
    }

    /// Returns the number of new strings in some cells.
    fn sum(&self, cells: &[u16]) -> u64 {
        cells.iter().map(|cell| self.cells[usize::from(*cell)]).sum()
    }

    /// Returns the scheme of a point.
    pub(crate) fn scheme(&self, point: &SchemePoint) -> Scheme {
        let counts = self.grammar.counts().count();
        let mut cuts = SchemeCuts::default();
        for (at, (group, pick)) in self.groups(&point.frame).zip(&point.picks).enumerate() {
            cuts[at / counts][group.decimals].clone_from(&self.choices[&group][*pick].starts);
        }
        Scheme::stripped(self.grammar, cuts)
    }

    /// Returns the number of new tokens of a point.
    pub(crate) fn cost(&self, point: &SchemePoint) -> u64 {
        let choices = self.groups(&point.frame).zip(&point.picks);
        let all = choices.flat_map(|(group, pick)| &self.choices[&group][*pick].cells);
        // A string that several pieces share is only one new token.
        all.collect::<BTreeSet<_>>().into_iter().map(|cell| self.cells[usize::from(*cell)]).sum()
    }
}

impl Landscape for StrippedSpace {
    type Point = SchemePoint;

    /// Returns a random frame, with the cheapest choices made one after the other; `None` if there is no frame with this many tokens.
    fn start(&self, tokens: usize, random: &mut ChaCha8Rng) -> Option<SchemePoint> {
        let frames = self.frames(tokens);
        let frame = *frames.get(random.random_range(0..frames.len().max(1)))?;
        let groups: Vec<_> = self.groups(&frame).map(|key| self.below(&key, u64::MAX)).collect();
        let mut walk = self.walk(u64::MAX);
        walk.step(&groups, &mut vec![None; groups.len()], 0, &frame);
        walk.best
    }

    fn new_tokens(&self, point: &SchemePoint) -> Option<u64> {
        Some(self.cost(point))
    }

    /// Returns the same point with one choice changed or, rarely, a point of another random frame.
    fn neighbour(&self, point: &SchemePoint, random: &mut ChaCha8Rng) -> SchemePoint {
        let tokens = point.frame.iter().map(|unit| unit.pieces).sum();
        // Choices are indices within one frame, so another frame needs its own choices.
        if random.random_range(0..32) == 0 {
            return self.start(tokens, random).unwrap_or_else(|| point.clone());
        }
        let mut next = point.clone();
        let at = random.random_range(0..next.picks.len());
        if let Some(group) = self.groups(&point.frame).nth(at) {
            next.picks[at] = random.random_range(0..self.choices[&group].len());
        }
        next
    }
}

/// Removes redundant choices: a choice whose cells are a subset of another choice's cells costs no more in any scheme, so the other
/// can be removed.
fn without_supersets(choices: &mut Vec<Choice>) {
    // A subset is never longer than its superset, so it is kept before the superset is examined.
    choices.sort_by_key(|choice| choice.cells.len());
    let mut kept: Vec<Choice> = Vec::new();
    for choice in choices.drain(..) {
        let holds = |cell: &u16| choice.cells.binary_search(cell).is_ok();
        if !kept.iter().any(|small| small.cells.iter().all(holds)) {
            kept.push(choice);
        }
    }
    *choices = kept;
}

/// Returns every way to cut a unit whose number has this many decimals.
fn choices<V: BaseTokens, C: Fn(&str) -> String>(
    table: &mut CellTable<'_, V, C>,
    grammar: Grammar,
    unit: Unit,
    decimals: usize,
) -> Vec<Choice> {
    let slots = grammar.slots([decimals; 3]);
    let present: Vec<usize> = (unit.first..unit.end).filter(|slot| slots[*slot].is_some()).collect();
    let mut all = Vec::new();
    // One bit for each slot except the first, before which every unit is cut.
    for bits in 0..1u32 << (present.len() - 1) {
        let starts: Vec<usize> = present
            .iter()
            .enumerate()
            .filter(|(at, _)| *at == 0 || bits >> (at - 1) & 1 == 1)
            .map(|(_, s)| *s)
            .collect();
        let mut cells = BTreeSet::new();
        let allowed = spans(&starts, unit.end).all(|(start, end)| {
            let row: Vec<BlockSlot> = slots[start..end].iter().flatten().copied().collect();
            table.cells(&row).is_some_and(|found| {
                cells.extend(found);
                true
            })
        });
        if allowed {
            // Cells that cost nothing would only make equal choices look different.
            cells.retain(|cell| table.costs[usize::from(*cell)] > 0);
            all.push(Choice { starts, cells: cells.into_iter().collect() });
        }
    }
    all
}

/// Returns the cell of a string.
fn cell(string: &str, range: u32) -> String {
    let mut out = String::new();
    let mut rest = string;
    while let Some(first) = rest.chars().next() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (head, tail) = rest.split_at(digits.max(first.len_utf8()));
        rest = tail;
        if digits == 0 {
            out.push_str(head);
            continue;
        }
        out.extend(std::iter::repeat_n('d', digits));
        if head.parse().is_ok_and(|n: u32| n < range && n.to_string() == head) {
            out.push('!');
        }
        if head.ends_with('0') {
            out.push('0');
        }
    }
    out
}

/// A depth-first walk over the schemes of a frame.
struct Walk<'s> {
    space: &'s StrippedSpace,
    /// The cells that the current branch uses.
    uses: Vec<bool>,
    best: Option<SchemePoint>,
    /// The number of new tokens that a scheme must stay below to be better.
    bound: u64,
    /// Whether only the cheapest choice is tried.
    greedy: bool,
}

impl Walk<'_> {
    /// Makes a choice for the group whose cheapest choice costs most. Groups with a choice that costs nothing more are left to the
    /// end: that choice stays free, and no other can be better.
    fn step(
        &mut self,
        groups: &[Vec<(usize, &Choice)>],
        picks: &mut [Option<usize>],
        spent: u64,
        frame: &Frame,
    ) {
        let mut free = Vec::new();
        let mut dearest: Option<(u64, usize)> = None;
        for (at, group) in groups.iter().enumerate().filter(|(at, _)| picks[*at].is_none()) {
            let costs = group.iter().map(|(pick, choice)| (self.more(choice), *pick));
            let Some((least, pick)) = costs.min() else { return };
            if least == 0 {
                free.push((at, pick));
            } else if dearest.is_none_or(|(most, _)| least > most) {
                dearest = Some((least, at));
            }
        }
        if spent + dearest.map_or(0, |(least, _)| least) >= self.bound {
            return;
        }
        let Some((_, at)) = dearest else {
            let mut all = picks.to_vec();
            free.iter().for_each(|(at, pick)| all[*at] = Some(*pick));
            self.bound = spent;
            self.best = all
                .into_iter()
                .collect::<Option<Vec<usize>>>()
                .map(|picks| SchemePoint { frame: *frame, picks });
            return;
        };
        let mut order: Vec<(u64, usize, &Choice)> =
            groups[at].iter().map(|(pick, choice)| (self.more(choice), *pick, *choice)).collect();
        order.sort_unstable_by_key(|(more, pick, _)| (*more, *pick));
        order.truncate(if self.greedy { 1 } else { order.len() });
        for (more, pick, choice) in order {
            if spent + more >= self.bound {
                break;
            }
            let new: Vec<usize> =
                choice.cells.iter().map(|cell| usize::from(*cell)).filter(|cell| !self.uses[*cell]).collect();
            new.iter().for_each(|cell| self.uses[*cell] = true);
            picks[at] = Some(pick);
            self.step(groups, picks, spent + more, frame);
            picks[at] = None;
            new.iter().for_each(|cell| self.uses[*cell] = false);
        }
    }

    /// Returns the additional cost of a choice.
    fn more(&self, choice: &Choice) -> u64 {
        let new = choice.cells.iter().map(|cell| usize::from(*cell)).filter(|cell| !self.uses[*cell]);
        new.map(|cell| self.space.cells[cell]).sum()
    }
}

#[cfg(test)]
mod tests;
