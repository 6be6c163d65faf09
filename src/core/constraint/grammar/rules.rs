//! Grammar rules over token ids, built from the tables of an automaton.
//!
//! A block may end in one of two modes, and the text behind depends on the mode. So rules are made for each mode: `b7` derives the
//! token sequences from state 7 to an end in this mode. If only one mode occurs, the molecule is one rule, a sequence of segments.
//! If both occur, each place between two blocks has a rule for either mode.
//!
//! llguidance (up to 1.9.1) fails where the only legal token has the bytes of another token with a smaller id, as the characters
//! of a vocabulary with byte fallback have: it looks the token up by its bytes, and finds the other. There the rules have the
//! character itself. llguidance then asks the tokenizer, which writes a character as its token and not as its byte. Where several
//! tokens are legal, a character would also allow the byte, and ids work; so a block that had to end is told from one that could
//! have continued, since only behind the first is the next token the only one.

use std::collections::BTreeMap;

use crate::constraint::acyclic::values;
use crate::constraint::automaton::{BlockTable, MoleculeTable, TEXT_OVER};

/// The subject of a rule, which determines its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Head {
    /// The whole molecule.
    Start,
    /// The rest of the molecule from an entry of `order` on, behind a block with an end (see [`ENDS`]).
    From(usize, usize),
    /// A segment behind a block with an end, together with the block behind it, which has another end; the last segment has no
    /// block behind it.
    Segment(usize, usize, Option<usize>),
    /// A block from a state on, up to an end.
    Block(usize, usize),
    /// The texts of a skeleton from a place on.
    Place(usize),
    /// A part with slots, by its index, from a state on.
    Part(usize, u32),
    /// A rule that derives no text. There are two, which refer to each other.
    Nothing(usize),
}

/// A symbol of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Symbol {
    /// One of these tokens; sorted.
    Tokens(Vec<u32>),
    /// The token of this character, which is the only legal one.
    Character(char),
    /// Any text that this rule derives.
    Rule(Head),
}

/// The alternatives of a rule. A rule without alternatives derives no text.
pub(super) type Alternatives = Vec<Vec<Symbol>>;

/// The rules of a grammar, from [`Head::Start`] on.
pub(super) type Rules = BTreeMap<Head, Alternatives>;

/// The number of ends of a block: the two modes of a block that had to end, then the two modes of one that could have continued.
pub(super) const ENDS: usize = 4;

/// Returns the mode of an end.
fn mode_of(end: usize) -> usize {
    end % 2
}

/// Returns whether a block with this end could have continued.
fn could_continue(end: usize) -> bool {
    end >= 2
}

/// Tokens that the engine looks up by their bytes and mistakes for others, with the character that each writes.
pub(super) type ConfusedTokens = BTreeMap<u32, char>;

/// Returns the rules of a molecule.
pub(super) fn rules(table: &MoleculeTable, mistaken: &ConfusedTokens) -> Rules {
    let ends = ends(&table.block, !mistaken.is_empty());
    let mut builder = Builder { table, block: &table.block, mistaken, ends, rules: Rules::new() };
    builder.start();
    uncached(builder.rules)
}

/// Works around a fault of XGrammar (up to 0.2.8), which would confuse molecules. It caches the masks of rules across grammars by a
/// hash that ignores token ids, so rules of the same shape look equal to it. It does not hash a rule that refers to rules which refer
/// to each other in more than a simple loop, nor a rule that refers to such a rule. So every rule without references gets two more
/// alternatives, which refer to such rules and derive no text.
pub(super) fn uncached(mut rules: Rules) -> Rules {
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

/// Returns the end of a block that ends in a state although it could continue, if such an end counts as another one.
fn end_at(block: &BlockTable, state: usize, apart: bool) -> Option<usize> {
    let mode = usize::try_from(block.exits[state]).ok()?;
    Some(if apart { mode + 2 } else { mode })
}

/// By state, the ends of a block from there on. `apart`: whether an end of a block that could have continued counts as another one.
fn ends(block: &BlockTable, apart: bool) -> Vec<[bool; ENDS]> {
    let states = |state: usize| block.edges.row(state).1.iter().filter(|to| **to >= 0).map(|to| *to as usize);
    let count = block.edges.len();
    let ends = values(
        count,
        0..count,
        |state| states(state).collect(),
        |state, known: &[Option<[bool; ENDS]>]| {
            let exits = block.edges.row(state).1.iter().filter(|to| **to < 0).map(|to| (-1 - to) as usize);
            let mut here = [false; ENDS];
            exits.chain(end_at(block, state, apart)).for_each(|end| here[end] = true);
            for below in states(state).filter_map(|to| known[to]) {
                here = std::array::from_fn(|end| here[end] || below[end]);
            }
            Some(here)
        },
    );
    ends.into_iter().flatten().map(Option::unwrap_or_default).collect()
}

struct Builder<'t> {
    table: &'t MoleculeTable,
    block: &'t BlockTable,
    mistaken: &'t ConfusedTokens,
    ends: Vec<[bool; ENDS]>,
    rules: Rules,
}

impl Builder<'_> {
    /// Adds the rule of the molecule and all rules that it needs.
    fn start(&mut self) {
        let found: Vec<usize> = (0..ENDS).filter(|end| self.ends.iter().any(|ends| ends[*end])).collect();
        let way = match found[..] {
            [end] => self.row(end),
            _ => vec![self.from(0, 0)],
        };
        self.rules.insert(Head::Start, vec![way]);
    }

    /// Returns all segments in sequence, for blocks that have only one end.
    fn row(&mut self, end: usize) -> Vec<Symbol> {
        let last = self.table.order.len() - 1;
        let segments = self.table.order.iter().enumerate().map(|(at, segment)| {
            let before = if at == 0 { 0 } else { end };
            self.segment(*segment as usize, before, (at < last).then_some(end))
        });
        segments.collect()
    }

    /// Returns the rest of the molecule from an entry on.
    fn from(&mut self, at: usize, before: usize) -> Symbol {
        let head = Head::From(at, before);
        // Built from the end, because a molecule may have more atoms than recursion could handle.
        for at in (at..self.table.order.len()).rev() {
            for before in 0..ENDS {
                let ways = self.ways_from(at, before);
                if !ways.is_empty() {
                    self.rules.insert(Head::From(at, before), ways);
                }
            }
        }
        Symbol::Rule(head)
    }

    fn ways_from(&mut self, at: usize, before: usize) -> Alternatives {
        let segment = self.table.order[at] as usize;
        let root = self.table.segments[segment].roots[mode_of(before)];
        // A root of `TEXT_OVER` is not a place but still an alternative: the last segment has no tokens.
        if (root < 0 && root != TEXT_OVER) || (at == 0 && before > 0) {
            return Vec::new();
        }
        if at + 1 == self.table.order.len() {
            return vec![vec![self.segment(segment, before, None)]];
        }
        let mut ways = Vec::new();
        for after in 0..ENDS {
            let next = Head::From(at + 1, after);
            if self.leads(segment, root, after) && self.rules.contains_key(&next) {
                ways.push(vec![self.segment(segment, before, Some(after)), Symbol::Rule(next)]);
            }
        }
        ways
    }

    /// Returns whether a place of a segment leads to a block that can have an end.
    fn leads(&self, segment: usize, place: i32, after: usize) -> bool {
        match self.node(place) {
            Some(node) => {
                let (_, targets) = self.table.segments[segment].edges.row(node);
                targets.iter().any(|to| self.leads(segment, *to, after))
            }
            None => place >= 0 && self.ends[place as usize][after],
        }
    }

    /// Returns the index of the node at a place of a segment; `None` if the place is a state of the block, or not a place.
    fn node(&self, place: i32) -> Option<usize> {
        usize::try_from(place).ok()?.checked_sub(self.block.edges.len())
    }

    /// Returns the rule of a segment together with the block behind it.
    fn segment(&mut self, segment: usize, before: usize, after: Option<usize>) -> Symbol {
        let head = Head::Segment(segment, before, after);
        if !self.rules.contains_key(&head) {
            let root = self.table.segments[segment].roots[mode_of(before)];
            let ways = self.ways_of(segment, root, after, could_continue(before));
            self.rules.insert(head, ways);
        }
        Symbol::Rule(head)
    }

    /// Returns the tokens of a place. `only`: whether no other is legal there.
    fn tokens(&self, ids: Vec<u32>, only: bool) -> Symbol {
        let character = match ids[..] {
            [id] if only => self.mistaken.get(&id),
            _ => None,
        };
        character.map_or(Symbol::Tokens(ids), |c| Symbol::Character(*c))
    }

    /// Returns the alternatives from a place of a segment on. Segments are small trees, so all paths are listed. `open`: whether the
    /// block before could have continued instead.
    fn ways_of(&mut self, segment: usize, place: i32, after: Option<usize>, open: bool) -> Alternatives {
        let table = self.table;
        if place == TEXT_OVER {
            return if after.is_none() { vec![Vec::new()] } else { Vec::new() };
        }
        let Some(node) = self.node(place) else {
            return match after {
                Some(end) if place >= 0 && self.ends[place as usize][end] => vec![self.block(place, end)],
                _ => Vec::new(),
            };
        };
        let mut ways = Vec::new();
        let (ids, targets) = table.segments[segment].edges.row(node);
        let only = ids.len() == 1 && !open;
        for (to, ids) in by_target(ids, targets) {
            for rest in self.ways_of(segment, to, after, false) {
                ways.push([vec![self.tokens(ids.clone(), only)], rest].concat());
            }
        }
        ways
    }

    /// Returns a block from a state on: first the forced tokens, then a rule.
    fn block(&mut self, mut state: i32, end: usize) -> Vec<Symbol> {
        let block = self.block;
        let mut way = Vec::new();
        while let (&[id], &[to]) = block.edges.row(state as usize)
            && block.exits[state as usize] < 0
            && to >= 0
        {
            way.push(self.tokens(vec![id], true));
            state = to;
        }
        let head = Head::Block(state as usize, end);
        if !self.rules.contains_key(&head) {
            // Inserted before its alternatives are built, so that it is built once. Blocks are finite, so it does not occur inside
            // itself.
            self.rules.insert(head, Vec::new());
            let ways = self.ways_in(state as usize, end);
            self.rules.insert(head, ways);
        }
        way.push(Symbol::Rule(head));
        way
    }

    fn ways_in(&mut self, state: usize, end: usize) -> Alternatives {
        let block = self.block;
        let mut ways = Vec::new();
        let (ids, targets) = block.edges.row(state);
        let only = ids.len() == 1 && block.exits[state] < 0;
        for (to, ids) in by_target(ids, targets) {
            let tokens = self.tokens(ids, only);
            if to == -1 - end as i32 {
                ways.push(vec![tokens]);
            } else if to >= 0 && self.ends[to as usize][end] {
                ways.push([vec![tokens], self.block(to, end)].concat());
            }
        }
        if end_at(block, state, !self.mistaken.is_empty()) == Some(end) {
            ways.push(Vec::new());
        }
        ways
    }
}

/// Returns the ids of a row grouped by target, in the order of the first id of each group.
pub(super) fn by_target<T: Copy + Eq>(ids: &[u32], targets: &[T]) -> Vec<(T, Vec<u32>)> {
    let mut groups: Vec<(T, Vec<u32>)> = Vec::new();
    for (id, to) in ids.iter().zip(targets) {
        match groups.iter_mut().find(|(known, _)| known == to) {
            Some((_, group)) => group.push(*id),
            None => groups.push((*to, vec![*id])),
        }
    }
    groups
}
