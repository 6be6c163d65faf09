//! Logit processors: what a row of generated text may write next. Knows no model and no candle.
//!
//! A [`LogitProcessor`] belongs to a tokenizer. A [`Constraint`] belongs to one molecule and is shared by all generations
//! of it; a [`State`] belongs to one row. The decode loop asks for the [`Mask`] of a state, samples under it, and advances
//! the state by the token that was taken. Masks are sparse lists of token ids; nothing of size `[batch, vocab]` is ever
//! written.
//!
//! - `position` holds the users' position templates, as their variants 2.1 to 4.3 do it; `vocabulary` the sets of tokens
//!   that they block, `template` the tokenised skeleton, [`Placeholder`] what is in its blocks.
//! - `truncating` ends a block when its coordinate is complete.
//! - [`automaton`] allows canonical tokens of legal texts and nothing else; [`grammar`] writes it for other engines.
//! - [`strip_junk`] repairs numbers afterwards; [`TextClass`] says what a token is about.

pub mod automaton;
pub mod grammar;
mod junk;
mod mask;
mod placeholder;
mod position;
mod processor;
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

/// Where one row stands. Its meaning is the constraint's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Tokens written, or the copy segment.
    pub at: u32,
    /// State inside the coordinate grammar.
    pub inner: u32,
}

/// What a device can follow texts by, without asking the host.
pub enum DeviceRule<'c> {
    /// The tables of an automaton.
    Automaton(&'c automaton::MoleculeAutomaton),
    /// Every token is allowed always.
    Any {
        /// Ends the text.
        eos: u32,
    },
    /// Nothing: masks come from the host.
    Host,
}

/// A logit processor for one molecule.
pub trait Constraint: Send + Sync {
    /// The state after the prompt.
    fn start(&self) -> State;

    /// What may come next.
    fn mask(&self, state: &State) -> Mask<'_>;

    /// The state after `token`, which the mask of `state` allowed.
    fn advance(&self, state: &mut State, token: u32);

    /// Appends the tokens that are forced from `state` on, whatever is sampled: they can be fed in one forward pass.
    fn forced_run(&self, state: &State, run: &mut Vec<u32>) {
        let mut state = *state;
        while let Mask::Forced(token) = self.mask(&state) {
            run.push(token);
            // A state that is over forces EOS again and again, so the run ends with the first.
            if self.is_over(&state, token) {
                break;
            }
            self.advance(&mut state, token);
        }
    }

    /// Whether `token`, taken in `state`, ends the text (EOS).
    fn is_over(&self, state: &State, token: u32) -> bool;

    /// Whether [`Constraint::observe`] wants the most likely token of the unmasked logits before each mask.
    fn wants_argmax(&self) -> bool {
        false
    }

    /// What a device can follow it by.
    fn device_rule(&self) -> DeviceRule<'_> {
        DeviceRule::Host
    }

    /// Learns the most likely token of the unmasked logits; called before [`Constraint::mask`] where wanted.
    fn observe(&self, _state: &mut State, _argmax: u32) {}
}
