//! Rules of a grammar in token ids, from the tables of an automaton.
//!
//! A block may end in one of two modes, and what follows depends on it, so rules are made for a mode: `b7` derives what
//! leads from state 7 to an end in this mode. Where only one mode occurs the molecule is one rule, a row of segments. Where
//! both do, each place between two blocks has a rule for either mode.

use std::collections::BTreeMap;

use crate::constraint::automaton::{BlockTable, MoleculeTable, SegmentTable, TEXT_OVER};

/// What a rule is about; its name follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Head {
    /// The molecule.
    Start,
    /// What is left of it from an entry of its order on, behind a block that ended in a mode.
    From(usize, usize),
    /// A segment behind a block that ended in a mode, with the block behind it, which ends in another; the last segment has
    /// none.
    Segment(usize, usize, Option<usize>),
    /// A block from a state on, to an end in a mode.
    Block(usize, usize),
    /// Nothing at all: no text comes of it. There are two, which name each other.
    Nothing(usize),
}

/// A symbol of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Symbol {
    /// One of these tokens; sorted.
    Tokens(Vec<u32>),
    /// What a rule derives.
    Rule(Head),
}

/// The ways of a rule; an empty one derives nothing.
pub(super) type Ways = Vec<Vec<Symbol>>;

/// The rules of a grammar, from [`Head::Start`] on.
pub(super) type Rules = BTreeMap<Head, Ways>;

/// The rules of a molecule.
pub(super) fn rules(table: &MoleculeTable) -> Rules {
    let mut builder = Builder { table, block: &table.block, ends: ends(&table.block), rules: Rules::new() };
    builder.start();
    uncached(builder.rules)
}

/// Keeps XGrammar (up to 0.2.8) from mixing up molecules. It keeps masks of rules between grammars by a hash that leaves token
/// ids out, so that rules of one shape are one to it. A rule that names rules which go round in more than a simple loop is not
/// hashed, nor is one that names it. So the rules that name no other get two ways more, which derive nothing.
fn uncached(mut rules: Rules) -> Rules {
    let nothing = [0, 1].map(Head::Nothing);
    for ways in rules.values_mut() {
        if !ways.iter().flatten().any(|symbol| matches!(symbol, Symbol::Rule(_))) {
            ways.extend(nothing.map(|head| vec![Symbol::Rule(head)]));
        }
    }
    for at in 0..2 {
        let [own, other] = [nothing[at], nothing[1 - at]].map(Symbol::Rule);
        rules.insert(nothing[at], vec![vec![own, other.clone()], vec![other.clone(), other]]);
    }
    rules
}

/// In which modes a block can end, from each state on.
fn ends(block: &BlockTable) -> Vec<[bool; 2]> {
    let mut ends: Vec<Option<[bool; 2]>> = vec![None; block.edges.len()];
    for root in 0..ends.len() {
        let mut waiting = vec![root];
        while let Some(&state) = waiting.last() {
            let (_, targets) = block.edges.row(state);
            let states = targets.iter().filter(|to| **to >= 0).map(|to| *to as usize);
            let unknown: Vec<usize> = states.clone().filter(|to| ends[*to].is_none()).collect();
            if ends[state].is_some() || unknown.is_empty() {
                let exits = targets.iter().filter(|to| **to < 0).map(|to| (-1 - to) as usize);
                let exits = exits.chain(usize::try_from(block.exits[state]));
                let mut here = [false; 2];
                exits.for_each(|mode| here[mode] = true);
                for below in states.filter_map(|to| ends[to]) {
                    here = [here[0] || below[0], here[1] || below[1]];
                }
                ends[state] = Some(here);
                waiting.pop();
            } else {
                // The grammar of a block is finite, so this comes to an end.
                waiting.extend(unknown);
            }
        }
    }
    ends.into_iter().map(Option::unwrap_or_default).collect()
}

struct Builder<'t> {
    table: &'t MoleculeTable,
    block: &'t BlockTable,
    ends: Vec<[bool; 2]>,
    rules: Rules,
}

impl Builder<'_> {
    /// The rule of the molecule, and all that it needs.
    fn start(&mut self) {
        let modes: Vec<usize> = (0..2).filter(|mode| self.ends.iter().any(|ends| ends[*mode])).collect();
        let way = match modes[..] {
            [mode] => self.row(mode),
            _ => vec![self.from(0, 0)],
        };
        self.rules.insert(Head::Start, vec![way]);
    }

    /// All segments in a row, for blocks that end in one mode alone.
    fn row(&mut self, mode: usize) -> Vec<Symbol> {
        let last = self.table.order.len() - 1;
        let order = self.table.order.iter().enumerate();
        order
            .map(|(at, segment)| {
                let before = if at == 0 { 0 } else { mode };
                self.segment(*segment as usize, before, (at < last).then_some(mode))
            })
            .collect()
    }

    /// The rest of the molecule from an entry on.
    fn from(&mut self, at: usize, before: usize) -> Symbol {
        let head = Head::From(at, before);
        // From the end, for a molecule may have more atoms than calls can be nested.
        for at in (at..self.table.order.len()).rev() {
            for before in 0..2 {
                let ways = self.ways_from(at, before);
                if !ways.is_empty() {
                    self.rules.insert(Head::From(at, before), ways);
                }
            }
        }
        Symbol::Rule(head)
    }

    fn ways_from(&mut self, at: usize, before: usize) -> Ways {
        let segment = self.table.order[at] as usize;
        let root = self.table.segments[segment].roots[before];
        // A root of `TEXT_OVER` is no place either, but a way: the last segment then has no tokens.
        if (root < 0 && root != TEXT_OVER) || (at == 0 && before > 0) {
            return Vec::new();
        }
        if at + 1 == self.table.order.len() {
            return vec![vec![self.segment(segment, before, None)]];
        }
        let mut ways = Vec::new();
        for after in 0..2 {
            let next = Head::From(at + 1, after);
            let leads = self.leads(segment, self.table.segments[segment].roots[before], after);
            if leads && self.rules.contains_key(&next) {
                ways.push(vec![self.segment(segment, before, Some(after)), Symbol::Rule(next)]);
            }
        }
        ways
    }

    /// Whether a place of a segment leads to a block that ends in a mode.
    fn leads(&self, segment: usize, place: i32, after: usize) -> bool {
        match self.node(place) {
            Some(node) => {
                let (_, targets) = self.table.segments[segment].edges.row(node);
                targets.iter().any(|to| self.leads(segment, *to, after))
            }
            None => place >= 0 && self.ends[place as usize][after],
        }
    }

    /// The node that a place of a segment is; none if it is a state of the block, or no place.
    fn node(&self, place: i32) -> Option<usize> {
        usize::try_from(place).ok()?.checked_sub(self.block.edges.len())
    }

    /// A segment with the block behind it.
    fn segment(&mut self, segment: usize, before: usize, after: Option<usize>) -> Symbol {
        let head = Head::Segment(segment, before, after);
        if !self.rules.contains_key(&head) {
            let table: &SegmentTable = &self.table.segments[segment];
            let ways = self.ways_of(segment, table.roots[before], after);
            self.rules.insert(head, ways);
        }
        Symbol::Rule(head)
    }

    /// The ways from a place of a segment on. Segments are small trees, so all of their ways are written out.
    fn ways_of(&mut self, segment: usize, place: i32, after: Option<usize>) -> Ways {
        let table = self.table;
        if place == TEXT_OVER {
            return if after.is_none() { vec![Vec::new()] } else { Vec::new() };
        }
        let Some(node) = self.node(place) else {
            return match after {
                Some(mode) if place >= 0 && self.ends[place as usize][mode] => vec![self.block(place, mode)],
                _ => Vec::new(),
            };
        };
        let mut ways = Vec::new();
        for (to, ids) in by_target(table.segments[segment].edges.row(node)) {
            for rest in self.ways_of(segment, to, after) {
                ways.push([vec![Symbol::Tokens(ids.clone())], rest].concat());
            }
        }
        ways
    }

    /// A block from a state on: single tokens that are forced, then a rule.
    fn block(&mut self, mut state: i32, mode: usize) -> Vec<Symbol> {
        let block = self.block;
        let mut way = Vec::new();
        loop {
            let row = block.edges.row(state as usize);
            match row {
                (&[id], &[to]) if block.exits[state as usize] < 0 && to >= 0 => {
                    way.push(Symbol::Tokens(vec![id]));
                    state = to;
                }
                _ => break,
            }
        }
        let head = Head::Block(state as usize, mode);
        if !self.rules.contains_key(&head) {
            // Before its ways, so that it is not begun again; blocks are finite, so that it is never met below itself.
            self.rules.insert(head, Vec::new());
            let ways = self.ways_in(state as usize, mode);
            self.rules.insert(head, ways);
        }
        way.push(Symbol::Rule(head));
        way
    }

    fn ways_in(&mut self, state: usize, mode: usize) -> Ways {
        let block = self.block;
        let mut ways = Vec::new();
        for (to, ids) in by_target(block.edges.row(state)) {
            let tokens = Symbol::Tokens(ids);
            if to == -1 - mode as i32 {
                ways.push(vec![tokens]);
            } else if to >= 0 && self.ends[to as usize][mode] {
                ways.push([vec![tokens], self.block(to, mode)].concat());
            }
        }
        if block.exits[state] == mode as i32 {
            ways.push(Vec::new());
        }
        ways
    }
}

/// The ids of a row by where they lead, in the order of the first of each.
fn by_target((ids, targets): (&[u32], &[i32])) -> Vec<(i32, Vec<u32>)> {
    let mut groups: Vec<(i32, Vec<u32>)> = Vec::new();
    for (id, to) in ids.iter().zip(targets) {
        match groups.iter_mut().find(|(known, _)| known == to) {
            Some((_, group)) => group.push(*id),
            None => groups.push((*to, vec![*id])),
        }
    }
    groups
}
