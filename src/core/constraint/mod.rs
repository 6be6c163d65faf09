//! Logit processors: which tokens may come next in generated text. This module knows neither models nor candle.
//!
//! A [`LogitProcessor`] belongs to a tokenizer. A [`Constraint`] belongs to one molecule and is shared by all its generations. A
//! [`State`] belongs to one row of a batch. The decode loop asks for the [`Mask`] of a state, samples under it, and advances the
//! state by the sampled token. Masks are sparse lists of token ids; no mask of shape `[batch, vocab]` is ever written.
//!
//! - `position` holds the users' position templates, in their variants 2.1 to 4.3. `vocabulary` holds the sets of tokens that they
//!   block, `template` the tokenised skeleton, and [`Placeholder`] the content of its blocks.
//! - `truncating` ends a block as soon as its coordinate is complete.
//! - [`automaton`] allows exactly the canonical tokens of legal texts. [`grammar`] writes it for other engines.
//! - [`skeleton`] allows those of texts that a user describes.
//! - [`geometry`] narrows the automaton's masks by the coordinates that a row has written.
//! - [`strip_junk`] repairs numbers after generation. [`TextClass`] tells which part of a text a token belongs to.

mod acyclic;
pub mod automaton;
pub mod geometry;
pub mod grammar;
mod junk;
mod mask;
mod placeholder;
mod position;
mod processor;
pub mod skeleton;
mod template;
mod text_class;
mod truncating;
pub mod vocabulary;

pub use junk::strip_junk;
pub use mask::{Legal, Mask};
pub use placeholder::{Placeholder, THEIR_PLACEHOLDER, USUAL_PLACEHOLDER, as_written};
pub use processor::{LogitProcessor, ProcessorKind, Specials};
pub use template::{Slot, Template};
pub use text_class::{TextClass, byte_classes, token_class};

/// The state of one row. Its meaning depends on the constraint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// The number of tokens written, or the index of the copy segment.
    pub at: u32,
    /// The state inside the coordinate grammar.
    pub inner: u32,
}

/// The rule by which a device can follow texts without asking the host.
pub enum DeviceRule<'c> {
    /// The tables of an automaton.
    Automaton(&'c automaton::MoleculeAutomaton),
    /// Every token is always allowed.
    Any {
        /// The tokens that end the text.
        ends: &'c [u32],
    },
    /// No rule: masks come from the host.
    Host,
}

/// A logit processor for one molecule.
pub trait Constraint: Send + Sync {
    /// Returns the state after the prompt.
    fn start(&self) -> State;

    /// Returns the tokens that may come next.
    fn mask(&self, state: &State) -> Mask<'_>;

    /// Moves a state to the one after `token`, which the mask of `state` allowed.
    fn advance(&self, state: &mut State, token: u32);

    /// Appends the tokens that are forced from `state` on, whatever is sampled. They can be fed in one forward pass.
    fn forced_run(&self, state: &State, run: &mut Vec<u32>) {
        let mut state = *state;
        while let Mask::Forced(token) = self.mask(&state) {
            run.push(token);
            // A finished state forces EOS forever, so the run ends with the first one.
            if self.is_over(&state, token) {
                break;
            }
            self.advance(&mut state, token);
        }
    }

    /// Returns whether `token`, taken in `state`, ends the text (EOS).
    fn is_over(&self, state: &State, token: u32) -> bool;

    /// Returns whether [`Constraint::observe`] must receive the most likely token of the unmasked logits before each mask.
    fn wants_argmax(&self) -> bool {
        false
    }

    /// Returns whether a text is over behind the token that was written last.
    fn is_complete(&self, _state: &State) -> bool {
        false
    }

    /// Returns the rule by which a device can follow this constraint.
    fn device_rule(&self) -> DeviceRule<'_> {
        DeviceRule::Host
    }

    /// Returns the constraint whose rows narrow the masks by the coordinates that they have written, if this is one.
    fn geometry(&self) -> Option<&geometry::GeometryConstraint> {
        None
    }

    /// Returns the constraint whose rows follow a skeleton, if this is one.
    fn skeleton(&self) -> Option<&skeleton::SkeletonConstraint> {
        None
    }

    /// Receives the most likely token of the unmasked logits. It is called before [`Constraint::mask`] if
    /// [`Constraint::wants_argmax`].
    fn observe(&self, _state: &mut State, _argmax: u32) {}
}
