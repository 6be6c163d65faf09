//! Grammar rules over token ids, built from the tables of an automaton.
//!
//! A block may end in one of two modes, and the text behind depends on the mode. So rules are made for each mode: `b7` derives the
//! token sequences from state 7 to an end in this mode. If only one mode occurs, the molecule is one rule, a sequence of segments.
//! If both occur, each place between two blocks has a rule for either mode.

use std::collections::BTreeMap;

use crate::constraint::automaton::{BlockTable, MoleculeTable, TEXT_OVER};

/// The subject of a rule, which determines its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Head {
    /// The whole molecule.
    Start,
    /// The rest of the molecule from an entry of `order` on, behind a block that ended in a mode.
    From(usize, usize),
    /// A segment behind a block that ended in a mode, together with the block behind it, which ends in another mode; the last
    /// segment has no block behind it.
    Segment(usize, usize, Option<usize>),
    /// A block from a state on, up to an end in a mode.
    Block(usize, usize),
    /// A rule that derives no text. There are two, which refer to each other.
    Nothing(usize),
}

/// A symbol of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Symbol {
    /// One of these tokens; sorted.
    Tokens(Vec<u32>),
    /// Any text that this rule derives.
    Rule(Head),
}

/// The alternatives of a rule. A rule without alternatives derives no text.
pub(super) type Ways = Vec<Vec<Symbol>>;

/// The rules of a grammar, from [`Head::Start`] on.
pub(super) type Rules = BTreeMap<Head, Ways>;

/// The rules of a molecule.
pub(super) fn rules(table: &MoleculeTable) -> Rules {
    let mut builder = Builder { table, block: &table.block, ends: ends(&table.block), rules: Rules::new() };
    builder.start();
    uncached(builder.rules)
}

/// Works around a fault of XGrammar (up to 0.2.8), which would confuse molecules. It caches the masks of rules across grammars by a
/// hash that ignores token ids, so rules of the same shape look equal to it. It does not hash a rule that refers to rules which refer
/// to each other in more than a simple loop, nor a rule that refers to such a rule. So every rule without references gets two more
/// alternatives, which refer to such rules and derive no text.
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

/// By state, the modes in which a block can end from there on.
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
                // The grammar of a block is finite, so this terminates.
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
    /// Adds the rule of the molecule and all rules that it needs.
    fn start(&mut self) {
        let modes: Vec<usize> = (0..2).filter(|mode| self.ends.iter().any(|ends| ends[*mode])).collect();
        let way = match modes[..] {
            [mode] => self.row(mode),
            _ => vec![self.from(0, 0)],
        };
        self.rules.insert(Head::Start, vec![way]);
    }

    /// All segments in sequence, for blocks that can end in only one mode.
    fn row(&mut self, mode: usize) -> Vec<Symbol> {
        let last = self.table.order.len() - 1;
        let order = self.table.order.iter().enumerate();
        let symbol = |(at, segment): (usize, &u32)| {
            let before = if at == 0 { 0 } else { mode };
            self.segment(*segment as usize, before, (at < last).then_some(mode))
        };
        order.map(symbol).collect()
    }

    /// The rest of the molecule from an entry on.
    fn from(&mut self, at: usize, before: usize) -> Symbol {
        let head = Head::From(at, before);
        // Built from the end, because a molecule may have more atoms than recursion could handle.
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
        // A root of `TEXT_OVER` is not a place but still an alternative: the last segment has no tokens.
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

    /// Whether a place of a segment leads to a block that can end in a mode.
    fn leads(&self, segment: usize, place: i32, after: usize) -> bool {
        match self.node(place) {
            Some(node) => {
                let (_, targets) = self.table.segments[segment].edges.row(node);
                targets.iter().any(|to| self.leads(segment, *to, after))
            }
            None => place >= 0 && self.ends[place as usize][after],
        }
    }

    /// The index of the node at a place of a segment; `None` if the place is a state of the block, or not a place.
    fn node(&self, place: i32) -> Option<usize> {
        usize::try_from(place).ok()?.checked_sub(self.block.edges.len())
    }

    /// The rule of a segment together with the block behind it.
    fn segment(&mut self, segment: usize, before: usize, after: Option<usize>) -> Symbol {
        let head = Head::Segment(segment, before, after);
        if !self.rules.contains_key(&head) {
            let ways = self.ways_of(segment, self.table.segments[segment].roots[before], after);
            self.rules.insert(head, ways);
        }
        Symbol::Rule(head)
    }

    /// The alternatives from a place of a segment on. Segments are small trees, so all paths are listed.
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

    /// A block from a state on: first the forced tokens, then a rule.
    fn block(&mut self, mut state: i32, mode: usize) -> Vec<Symbol> {
        let block = self.block;
        let mut way = Vec::new();
        while let (&[id], &[to]) = block.edges.row(state as usize)
            && block.exits[state as usize] < 0
            && to >= 0
        {
            way.push(Symbol::Tokens(vec![id]));
            state = to;
        }
        let head = Head::Block(state as usize, mode);
        if !self.rules.contains_key(&head) {
            // Inserted before its alternatives are built, so that it is built once. Blocks are finite, so it does not occur inside
            // itself.
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

/// The ids of a row grouped by target, in the order of the first id of each group.
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
