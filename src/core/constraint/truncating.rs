//! The truncating processor, which the users proposed but did not build. It works like the allowlist, but once a coordinate is
//! complete, the text behind the block is forced at once, without filling the remaining slots with junk.
//!
//! In the fixed encoding, a coordinate is complete when the third number has all its decimals. In the stripped encoding, it is
//! complete when the third number has a digit and the model's most likely unmasked token does not continue a number. A block that
//! is incomplete when its slots run out is cut off, as in every position template.

use std::sync::Arc;

use super::mask::Mask;
use super::position::FreeSets;
use super::template::{Slot, Template};
use super::vocabulary::NumberTokens;
use super::{Constraint, State};
use crate::encoding::Encoding;
use crate::encoding::block;

/// The progress of a block, packed into [`State::inner`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Progress {
    block: block::Progress,
    /// Whether the model would stop writing the number, according to the last call of [`Constraint::observe`].
    stops: bool,
}

impl Progress {
    fn of(state: &State) -> Self {
        // Bits 0 and 1 hold the separators, bit 2 the digit, bits 3 to 5 the point, and bit 6 whether the model would stop.
        let bits = state.inner;
        let block = block::Progress { separators: bits & 3, digit: bits & 4 != 0, point: bits >> 3 & 7 };
        Progress { block, stops: bits & 64 != 0 }
    }

    fn packed(self) -> u32 {
        let block::Progress { separators, digit, point } = self.block;
        separators | u32::from(digit) << 2 | point << 3 | u32::from(self.stops) << 6
    }

    /// Returns whether the coordinate is complete.
    fn is_complete(self, encoding: Encoding) -> bool {
        self.block.is_whole(encoding) && (encoding.is_fixed() || self.stops)
    }
}

/// The truncating template of one molecule. `State::at` is the position.
pub(super) struct TruncatingTemplate {
    pub(super) template: Template,
    pub(super) sets: Arc<FreeSets>,
    pub(super) numbers: Arc<NumberTokens>,
    pub(super) encoding: Encoding,
    pub(super) eos: u32,
}

impl TruncatingTemplate {
    /// Returns the next position to write: the one behind the block if the block is complete.
    fn position(&self, state: &State) -> usize {
        let at = state.at as usize;
        let free = matches!(self.template.slots.get(at), Some(Slot::Free { .. }));
        if free && Progress::of(state).is_complete(self.encoding) { self.template.next_copy(at) } else { at }
    }
}

impl Constraint for TruncatingTemplate {
    fn start(&self) -> State {
        State::default()
    }

    fn mask(&self, state: &State) -> Mask<'_> {
        self.sets.mask(self.template.slots.get(self.position(state)), self.eos)
    }

    fn advance(&self, state: &mut State, token: u32) {
        let at = self.position(state);
        let mut progress = Progress::default();
        // A COPY token ends the block, and `stops` is valid for one position only.
        if let Some(Slot::Free { .. }) = self.template.slots.get(at) {
            progress.block = Progress::of(state).block;
            progress.block.write(self.numbers.text(token), self.encoding.separator());
        }
        *state = State { at: at as u32 + 1, inner: progress.packed() };
    }

    fn is_over(&self, state: &State, _token: u32) -> bool {
        self.position(state) >= self.template.slots.len()
    }

    fn wants_argmax(&self) -> bool {
        // The number of decimals shows when a fixed number is complete. For a stripped number, only the model knows.
        self.encoding.is_stripped()
    }

    fn observe(&self, state: &mut State, argmax: u32) {
        let progress = Progress { stops: !self.numbers.contains(argmax), ..Progress::of(state) };
        state.inner = progress.packed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_follows_the_text_and_packs() {
        let mut progress = Progress::default();
        for (text, complete) in [
            ("-1.2345", false),
            (",-0", false),
            (".98765", false),
            (",", false),
            ("7.123", false),
            ("4", true),
        ] {
            progress.block.write(text, ",");
            let state = State { at: 0, inner: progress.packed() };
            assert_eq!(Progress::of(&state), progress);
            assert_eq!(progress.is_complete(Encoding::FIXED), complete, "{text}");
        }
        assert!(!progress.is_complete(Encoding::STRIPPED));
        assert!(Progress { stops: true, ..progress }.is_complete(Encoding::STRIPPED));
        progress.block.write(",", ",");
        assert!(!progress.is_complete(Encoding::FIXED));
    }
}
