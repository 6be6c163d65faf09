//! The automata of many molecules as one set of tables with which a device follows texts.
//!
//! All edges lie in one table of rows. A *place* is a row: the states of a block come first, then the nodes of all segments, each
//! segment once. So the position in a text is one number, and a step is one search in one row. Tokens are named by *slots*. Tokens
//! that are ever sampled get the first slots, by ascending id, so that a slot is also the index of a logit if only these rows of
//! the LM head are computed. `src/engine/model/cuda/automaton.cu` reads these tables.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::molecule::MoleculeAutomaton;
use super::segment::{OVER, Segment};
use super::{Automaton, EXIT};
use crate::constraint::State;
use crate::error::{Error, Result};

/// The largest number of slots: the sort keys of the device have room for this many.
const MOST_SLOTS: usize = 1 << 24;

/// The tables for many molecules of one processor. All numbers are `u32`, as the device reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTable {
    /// Edges of place `p` are `offsets[p]..offsets[p + 1]`.
    pub offsets: Vec<u32>,
    /// The token of each edge, as a slot; ascending within a place.
    pub slots: Vec<u32>,
    /// The place that each edge leads to. [`DeviceTable::NEXT`] plus a mode stands for the root of that mode in the next segment,
    /// [`DeviceTable::OVER`] for the end of the text.
    pub targets: Vec<u32>,
    /// By state of a block, the mode in which the block may end before the next token, or [`DeviceTable::NONE`]. If it may end, the
    /// edges of that mode's root in the next segment are legal too.
    pub exits: Vec<u32>,
    /// By segment, the places where it begins, one for each mode of the preceding block. [`DeviceTable::NONE`] if it cannot follow
    /// that mode, [`DeviceTable::OVER`] if it has no tokens and the text is over. Both are the same number, which is safe: no block
    /// ends where the next segment cannot begin.
    pub roots: Vec<u32>,
    /// The segments of all molecules, concatenated.
    pub order: Vec<u32>,
    /// The segments of molecule `m` are `order[molecules[m]..molecules[m + 1]]`.
    pub molecules: Vec<u32>,
    /// The token id of each slot.
    pub tokens: Vec<u32>,
    /// Slots below this number have a logit and ascend with their ids. The others are always forced, or beyond the vocabulary of
    /// the model.
    pub known: u32,
}

impl DeviceTable {
    /// Stands for no place or no mode.
    pub const NONE: u32 = u32::MAX;
    /// The target of an edge that ends the text.
    pub(crate) const OVER: u32 = u32::MAX;
    /// The target of an edge that ends a block, before its mode is added.
    pub(crate) const NEXT: u32 = u32::MAX - 2;

    /// Returns the tables of some molecules for a model with `vocab` tokens. With `whole_head`, all logits are computed and slots below
    /// `vocab` equal token ids.
    ///
    /// # Errors
    /// If there are no molecules, they belong to different processors, or the tables are too large for a device.
    pub fn new(molecules: &[&MoleculeAutomaton], vocab: usize, whole_head: bool) -> Result<Self> {
        let Some(first) = molecules.first() else { return Err(refuse("there is no molecule")) };
        let is_other = |one: &&MoleculeAutomaton| !Arc::ptr_eq(&one.automaton, &first.automaton);
        if molecules.iter().any(is_other) {
            return Err(refuse("the molecules have different processors"));
        }
        let mut builder = Builder::new(&first.automaton, molecules);
        let tokens = builder.tokens(vocab, whole_head);
        if tokens.slots.len() > MOST_SLOTS {
            return Err(refuse("there are too many tokens"));
        }
        builder.edges(&tokens)?;
        Ok(builder.finish(molecules, tokens))
    }

    /// Returns the number of places that are states of a block.
    pub fn states(&self) -> u32 {
        self.exits.len() as u32
    }

    /// Returns the place where a molecule's texts begin, in its first segment.
    pub fn start(&self, molecule: usize) -> u32 {
        self.roots[2 * self.order[self.molecules[molecule] as usize] as usize]
    }

    /// Returns the segment and the place on the device for a text whose state on the host is `state`. `molecule_automaton` is the
    /// automaton of the molecule.
    pub fn place_of(
        &self,
        molecule_automaton: &MoleculeAutomaton,
        molecule: usize,
        state: State,
    ) -> (u32, u32) {
        let first = self.molecules[molecule] as usize;
        let Some(segment) = molecule_automaton.segments.get(state.at as usize) else { return (state.at, 0) };
        let states = self.states();
        if state.inner < states {
            return (state.at, state.inner);
        }
        // The nodes of a segment are shifted by the same amount as its roots.
        let number = self.order[first + state.at as usize] as usize;
        let mut shifts = (0..2).filter_map(|mode| {
            let own = segment.roots[mode].filter(|place| *place >= states && *place != OVER)?;
            Some(self.roots[2 * number + mode].wrapping_sub(own))
        });
        let shift = shifts.next().unwrap_or(0);
        (state.at, state.inner.wrapping_add(shift))
    }

    /// Returns the token ids whose rows of the LM head are needed, by slot.
    pub fn head_ids(&self) -> &[u32] {
        &self.tokens[..self.known as usize]
    }
}

fn refuse(problem: &str) -> Error {
    Error::input("the automaton's tables", problem, "generate on the CPU")
}

/// The token ids of slots, and the slots of token ids.
struct Tokens {
    ids: Vec<u32>,
    slots: HashMap<u32, u32>,
    known: u32,
}

struct Builder<'a> {
    automaton: &'a Automaton,
    /// Each distinct segment once.
    segments: Vec<&'a Segment>,
    number: HashMap<*const Segment, u32>,
    offsets: Vec<u32>,
    slots: Vec<u32>,
    targets: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn new(automaton: &'a Automaton, molecules: &[&'a MoleculeAutomaton]) -> Self {
        let mut builder = Builder {
            automaton,
            segments: Vec::new(),
            number: HashMap::new(),
            offsets: vec![0],
            slots: Vec::new(),
            targets: Vec::new(),
        };
        for segment in molecules.iter().flat_map(|molecule_automaton| &molecule_automaton.segments) {
            let Builder { segments, number, .. } = &mut builder;
            // Equal segments of one processor are shared, so pointers can be compared.
            number.entry(Arc::as_ptr(segment)).or_insert_with(|| {
                segments.push(segment);
                segments.len() as u32 - 1
            });
        }
        builder
    }

    fn states(&self) -> u32 {
        self.automaton.states.len() as u32
    }

    /// Returns the token ids that can begin a segment, in any mode.
    fn first_ids(&self, segment: &'a Segment) -> impl Iterator<Item = u32> + use<'a> {
        let states = self.states();
        // A root below the number of states is a state of the block: such a segment copies no text.
        let node = move |root: u32| segment.nodes.get(root.checked_sub(states)? as usize);
        segment.roots.into_iter().flatten().filter_map(node).flat_map(|node| node.ids.iter().copied())
    }

    /// Assigns slots: first the tokens that are ever sampled, by id, then those that are only forced.
    fn tokens(&self, vocab: usize, whole_head: bool) -> Tokens {
        let (mut drawn, mut all) = (BTreeSet::new(), BTreeSet::new());
        let may_exit = self.automaton.states.iter().any(|state| state.exit.is_some());
        for state in &self.automaton.states {
            all.extend(&state.ids);
            // A single id without competitors is forced, so its logit is never read.
            if state.ids.len() > 1 || state.exit.is_some() {
                drawn.extend(&state.ids);
            }
        }
        for segment in &self.segments {
            for node in &segment.nodes {
                all.extend(&node.ids);
                if node.ids.len() > 1 {
                    drawn.extend(&node.ids);
                }
            }
            // Where a block may end, the ids that begin the next segment compete with those that continue the block.
            if may_exit {
                drawn.extend(self.first_ids(segment));
            }
        }
        // The model has no logit for ids beyond its vocabulary.
        drawn.retain(|id| (*id as usize) < vocab);
        if whole_head {
            drawn = (0..vocab as u32).collect();
        }
        let known = drawn.len() as u32;
        let mut ids: Vec<u32> = drawn.iter().copied().collect();
        ids.extend(all.difference(&drawn));
        let slots = (0..).zip(&ids).map(|(slot, id)| (*id, slot)).collect();
        Tokens { ids, slots, known }
    }

    /// Adds a place with its edges.
    fn place(&mut self, tokens: &Tokens, ids: &[u32], target: impl Fn(usize) -> u32) {
        let mut edges: Vec<(u32, u32)> =
            ids.iter().enumerate().map(|(at, id)| (tokens.slots[id], target(at))).collect();
        // A row is searched by slot, and slots do not always ascend with ids.
        edges.sort_unstable();
        self.slots.extend(edges.iter().map(|(slot, _)| slot));
        self.targets.extend(edges.iter().map(|(_, target)| target));
        self.offsets.push(self.slots.len() as u32);
    }

    /// Adds all places: the states, then the nodes of each segment.
    fn edges(&mut self, tokens: &Tokens) -> Result<()> {
        let (automaton, states) = (self.automaton, self.states());
        for state in &automaton.states {
            self.place(tokens, &state.ids, |at| match state.targets[at] {
                to if to >= EXIT => DeviceTable::NEXT + (to - EXIT),
                to => to,
            });
        }
        for segment in self.segments.clone() {
            // In each segment, nodes are numbered from the number of states on.
            let shift = self.offsets.len() as u32 - 1 - states;
            for node in &segment.nodes {
                self.place(tokens, &node.ids, |at| match node.targets[at] {
                    OVER => DeviceTable::OVER,
                    to if to < states => to,
                    to => to + shift,
                });
            }
        }
        // There is one more offset than places, so all places stay below `NEXT`.
        let fits = self.offsets.len() < EXIT as usize && self.slots.len() < EXIT as usize;
        if fits { Ok(()) } else { Err(refuse("there are too many places")) }
    }

    fn finish(self, molecules: &[&MoleculeAutomaton], tokens: Tokens) -> DeviceTable {
        let mut shift = 0;
        let mut roots = Vec::with_capacity(2 * self.segments.len());
        for segment in &self.segments {
            roots.extend(segment.roots.map(|root| match root {
                Some(OVER) => DeviceTable::OVER,
                Some(place) if place < self.states() => place,
                Some(place) => place + shift,
                None => DeviceTable::NONE,
            }));
            shift += segment.nodes.len() as u32;
        }
        let mut order = Vec::new();
        let mut starts = vec![0];
        for molecule_automaton in molecules {
            let segments = molecule_automaton.segments.iter();
            order.extend(segments.map(|segment| self.number[&Arc::as_ptr(segment)]));
            starts.push(order.len() as u32);
        }
        let states = &self.automaton.states;
        DeviceTable {
            exits: states.iter().map(|s| s.exit.map_or(DeviceTable::NONE, |(mode, _)| mode as u32)).collect(),
            offsets: self.offsets,
            slots: self.slots,
            targets: self.targets,
            roots,
            order,
            molecules: starts,
            tokens: tokens.ids,
            known: tokens.known,
        }
    }
}
