//! The automata of many molecules as one set of tables that a device follows texts with.
//!
//! All edges lie in one table of rows; a *place* is such a row: the states of a block first, then the nodes of all segments,
//! each segment once. So a text stands at one number, and a step is one search in one row. Tokens are named by *slots*: those
//! that are ever drawn come first, by ascending id, so that a slot is also where a logit lies when only their rows of the LM
//! head are computed. `src/engine/model/cuda/automaton.cu` reads these tables.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::molecule::MoleculeAutomaton;
use super::segment::{OVER, Segment};
use super::{Automaton, EXIT};
use crate::constraint::State;
use crate::error::{Error, Result};

/// Most slots: a key that is sorted by has room for so many.
const MOST_SLOTS: usize = 1 << 24;

/// Tables of the automata of many molecules of one processor. All numbers are `u32`, as a device reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceTable {
    /// Edges of place `p` are `offsets[p]..offsets[p + 1]`.
    pub offsets: Vec<u32>,
    /// Of each edge its token as a slot; ascending within a place.
    pub slots: Vec<u32>,
    /// Of each edge the place it leads to; [`DeviceTable::NEXT`] or the number behind it: into the next segment, at the root
    /// of that mode; [`DeviceTable::OVER`]: behind it the text is over.
    pub targets: Vec<u32>,
    /// Of each state of a block the mode in which the block may end before the next token, or [`DeviceTable::NONE`]: then
    /// the edges of that root of the next segment are legal too.
    pub exits: Vec<u32>,
    /// Of each segment the places where it begins, by the mode of the block before; [`DeviceTable::NONE`] if it cannot,
    /// [`DeviceTable::OVER`] if it has no tokens and the text is over. The two are one number: no block ends where the next
    /// segment cannot begin.
    pub roots: Vec<u32>,
    /// The segments of all molecules, end to end.
    pub order: Vec<u32>,
    /// Molecule `m` is `order[molecules[m]..molecules[m + 1]]`.
    pub molecules: Vec<u32>,
    /// The id of each slot.
    pub tokens: Vec<u32>,
    /// Slots below have a logit, and ascend with their ids. The others are forced wherever they are legal, or beyond the
    /// vocabulary of the model.
    pub known: u32,
}

impl DeviceTable {
    /// No place, no mode.
    pub const NONE: u32 = u32::MAX;
    /// The target of an edge behind which the text is over.
    pub const OVER: u32 = u32::MAX;
    /// The target of an edge that ends a block, plus its mode.
    pub const NEXT: u32 = u32::MAX - 2;

    /// The tables of some molecules for a model of `vocab` tokens. `whole_head`: slots below `vocab` are ids, as where all
    /// logits are computed.
    ///
    /// # Errors
    /// If there are none, they are of different processors, or the tables are too large for a device.
    pub fn new(molecules: &[&MoleculeAutomaton], vocab: usize, whole_head: bool) -> Result<Self> {
        let Some(first) = molecules.first() else { return Err(refuse("there is no molecule")) };
        if molecules
            .iter()
            .any(|molecule_automaton| !Arc::ptr_eq(&molecule_automaton.automaton, &first.automaton))
        {
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

    /// How many places are states of a block.
    pub fn states(&self) -> u32 {
        self.exits.len() as u32
    }

    /// The place where a molecule's texts begin, in its first segment.
    pub fn start(&self, molecule: usize) -> u32 {
        self.roots[2 * self.order[self.molecules[molecule] as usize] as usize]
    }

    /// Where a text of a molecule stands on a device that is in `state` on the host: the segment, and the place.
    /// `molecule_automaton` is the molecule's.
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
        // Nodes of a segment are moved by as much as its roots are.
        let number = self.order[first + state.at as usize] as usize;
        let root = |mode: usize| {
            let own = segment.roots[mode].filter(|place| *place >= states && *place != OVER)?;
            Some(self.roots[2 * number + mode].wrapping_sub(own))
        };
        let shift = root(0).or_else(|| root(1)).unwrap_or(0);
        (state.at, state.inner.wrapping_add(shift))
    }

    /// The ids whose rows of the LM head are needed, by slot.
    pub fn head_ids(&self) -> &[u32] {
        &self.tokens[..self.known as usize]
    }
}

fn refuse(problem: &str) -> Error {
    Error::input("the automaton's tables", problem, "generate on the CPU")
}

/// The ids of slots, and the other way.
struct Tokens {
    ids: Vec<u32>,
    slots: HashMap<u32, u32>,
    known: u32,
}

struct Builder<'a> {
    automaton: &'a Automaton,
    /// Each once.
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
            // Segments of one processor are the same where they are equal.
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

    /// The ids that begin a segment, in any mode.
    fn first_ids(&self, segment: &'a Segment) -> impl Iterator<Item = u32> + use<'a> {
        let states = self.states();
        // A root below is a state of the block: such a segment copies nothing.
        let node = move |root: u32| segment.nodes.get(root.checked_sub(states)? as usize);
        segment.roots.into_iter().flatten().filter_map(node).flat_map(|node| node.ids.iter().copied())
    }

    /// Slots: what is ever drawn, by id, then what is only forced.
    fn tokens(&self, vocab: usize, whole_head: bool) -> Tokens {
        let (mut drawn, mut all) = (BTreeSet::new(), BTreeSet::new());
        let may_exit = self.automaton.states.iter().any(|state| state.exit.is_some());
        for state in &self.automaton.states {
            all.extend(&state.ids);
            // A single id that nothing competes with is forced, so its logit is never read.
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
            // Where a block may end, the ids that begin the next segment compete with those that go on.
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
        // A row is searched by slot, and slots need not ascend with ids.
        edges.sort_unstable();
        self.slots.extend(edges.iter().map(|(slot, _)| slot));
        self.targets.extend(edges.iter().map(|(_, target)| target));
        self.offsets.push(self.slots.len() as u32);
    }

    /// All places: states, then the nodes of each segment.
    fn edges(&mut self, tokens: &Tokens) -> Result<()> {
        let (automaton, states) = (self.automaton, self.states());
        for state in &automaton.states {
            self.place(tokens, &state.ids, |at| match state.targets[at] {
                to if to >= EXIT => DeviceTable::NEXT + (to - EXIT),
                to => to,
            });
        }
        for segment in self.segments.clone() {
            // Nodes are numbered from the number of states on in each segment.
            let shift = self.offsets.len() as u32 - 1 - states;
            for node in &segment.nodes {
                self.place(tokens, &node.ids, |at| match node.targets[at] {
                    OVER => DeviceTable::OVER,
                    to if to < states => to,
                    to => to + shift,
                });
            }
        }
        // There is one offset more than places, so all places stay below `NEXT`.
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
            order
                .extend(molecule_automaton.segments.iter().map(|segment| self.number[&Arc::as_ptr(segment)]));
            starts.push(order.len() as u32);
        }
        let exit = |mode: super::Mode| mode as u32;
        let states = &self.automaton.states;
        DeviceTable {
            exits: states.iter().map(|s| s.exit.map_or(DeviceTable::NONE, |(mode, _)| exit(mode))).collect(),
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
