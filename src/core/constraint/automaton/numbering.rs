//! The numbers of the automaton's states.

use std::collections::HashMap;

use super::{CompactState, EXIT, Mode};
use crate::encoding::language::{Languages, StateId};

/// The reachable states, numbered in the order in which they are found.
#[derive(Default)]
pub(super) struct Numbering {
    pub(super) order: Vec<StateId>,
    numbers: HashMap<StateId, u32>,
}

impl Numbering {
    /// Numbers the states that can be reached from `roots`, except exits, which have no edges.
    pub(super) fn add(&mut self, states: &Languages<u32, Mode>, roots: Vec<StateId>) {
        let mut waiting = roots;
        while let Some(id) = waiting.pop() {
            let edges = &states.node(id).edges;
            if !self.numbers.contains_key(&id) && !edges.is_empty() {
                self.numbers.insert(id, self.order.len() as u32);
                self.order.push(id);
                waiting.extend(edges.iter().map(|(_, target)| *target));
            }
        }
    }

    /// Returns the target of an edge to a state.
    pub(super) fn target(&self, states: &Languages<u32, Mode>, id: StateId) -> u32 {
        let exit = || EXIT + states.node(id).end.map_or(0, |mode| mode as u32);
        self.numbers.get(&id).copied().unwrap_or_else(exit)
    }

    /// Returns the states in their order.
    pub(super) fn compact(&self, states: &Languages<u32, Mode>) -> Vec<CompactState> {
        let mut exits = 0;
        let compact = self.order.iter().map(|id| {
            let node = states.node(*id);
            exits += usize::from(node.end.is_some());
            CompactState {
                ids: node.edges.iter().map(|(token, _)| *token).collect(),
                targets: node.edges.iter().map(|(_, then)| self.target(states, *then)).collect(),
                exit: node.end.map(|mode| (mode, exits - 1)),
            }
        });
        compact.collect()
    }
}
