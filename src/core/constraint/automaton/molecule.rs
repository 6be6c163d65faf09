//! The automaton of one molecule: alternating segments and blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::segment::{OVER, Segment};
use super::{Automaton, EXIT};
use crate::constraint::{Constraint, DeviceRule, Mask, State};

/// Follows the legal answers of one molecule.
///
/// `State::at` is the index of the segment, or of the segment before the block; past the last segment the text is over.
/// `State::inner` is the place inside: a state of the block if it is below the automaton's number of states, otherwise a node of
/// the segment.
pub struct MoleculeAutomaton {
    pub(super) automaton: Arc<Automaton>,
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) eos: u32,
}

/// The result of a step.
#[derive(Clone, Copy)]
enum Step {
    /// To a place within the segment or the block, or from a segment to its block.
    To(u32),
    /// Into the next segment.
    Next(u32),
    /// The text is over.
    Over,
}

impl Step {
    /// This step, or the end of the text if `place` stands for it.
    fn unless_over(self, place: u32) -> Self {
        if place == OVER { Step::Over } else { self }
    }
}

impl MoleculeAutomaton {
    /// Returns the tokens of one character that are also bytes of the vocabulary with a smaller id, with the character.
    pub fn mistaken(&self) -> &BTreeMap<u32, char> {
        &self.automaton.mistaken
    }

    fn states(&self) -> u32 {
        self.automaton.states.len() as u32
    }

    /// Returns the node at a place of segment `at`.
    fn node(&self, at: u32, place: u32) -> Option<&super::segment::SegmentNode> {
        self.segments.get(at as usize)?.nodes.get(place.checked_sub(self.states())? as usize)
    }

    /// Returns the step for `token` from a state; `None` if the token is not legal there.
    fn step(&self, state: &State, token: u32) -> Option<Step> {
        let edge = |ids: &[u32], targets: &[u32]| Some(targets[ids.binary_search(&token).ok()?]);
        if state.inner >= self.states() {
            let node = self.node(state.at, state.inner)?;
            let target = edge(&node.ids, &node.targets)?;
            return Some(Step::To(target).unless_over(target));
        }
        let here = &self.automaton.states[state.inner as usize];
        let next = self.segments.get(state.at as usize + 1)?;
        match edge(&here.ids, &here.targets) {
            Some(target) if target >= EXIT => {
                let root = next.roots[(target - EXIT) as usize]?;
                // A last segment may have no tokens: the slot is isolated with its closing bracket, and the closing tag ends the
                // text.
                Some(Step::Next(root).unless_over(root))
            }
            Some(target) => Some(Step::To(target)),
            None => {
                // The block ends before this token, which begins the next segment.
                let root = next.roots[here.exit?.0 as usize]?;
                let node = self.node(state.at + 1, root)?;
                let target = edge(&node.ids, &node.targets)?;
                Some(Step::Next(target).unless_over(target))
            }
        }
    }
}

impl Constraint for MoleculeAutomaton {
    fn start(&self) -> State {
        // A first segment always has this root.
        State { at: 0, inner: self.segments[0].roots[0].unwrap_or(0) }
    }

    fn mask(&self, state: &State) -> Mask<'_> {
        let Some(_) = self.segments.get(state.at as usize) else { return Mask::Forced(self.eos) };
        if let Some(node) = self.node(state.at, state.inner) {
            return Mask::only(&node.ids);
        }
        // A state that does not belong to this molecule allows no token.
        let Some(here) = self.automaton.states.get(state.inner as usize) else { return Mask::Only(&[]) };
        let masks = here.exit.and_then(|(mode, number)| {
            let next = self.segments.get(state.at as usize + 1)?;
            Some(&next.exits[mode as usize].as_ref()?[number])
        });
        Mask::only(masks.unwrap_or(&here.ids))
    }

    fn advance(&self, state: &mut State, token: u32) {
        match self.step(state, token) {
            Some(Step::To(inner)) => state.inner = inner,
            Some(Step::Next(inner)) => *state = State { at: state.at + 1, inner },
            Some(Step::Over) => *state = State { at: self.segments.len() as u32, inner: 0 },
            // EOS, or a token that the mask did not allow: the state stays as it was.
            None => {}
        }
    }

    fn is_over(&self, state: &State, _token: u32) -> bool {
        state.at as usize >= self.segments.len()
    }

    fn device_rule(&self) -> DeviceRule<'_> {
        DeviceRule::Automaton(self)
    }
}
