//! How far a text goes back at a dead end.

use drift_core::constraint::geometry::AtomPlace;

/// By how much the way back grows while a text comes to no more atoms than before. Twice as far wastes more on attempts that fail as
/// the one before; from the beginning at once, atoms that were right are written again.
const GROWTH: usize = 3;

/// The way of a text through its dead ends: the atom anew, then from one atom before it on, then from three, nine and so on, until
/// the text comes past the atom where no token was left.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backtracking {
    /// The last atom at which no token was left, and how many atoms before it the text went back to.
    last: Option<(usize, usize)>,
    /// The number of atoms that were written in vain.
    rewritten: usize,
}

impl Backtracking {
    /// Returns the atom from which the text is written again after a dead end at `place`. `None` if more than `times` the atoms of a
    /// conformer would have been written in vain.
    pub(super) fn target(&mut self, place: AtomPlace, times: u32) -> Option<usize> {
        let back = match self.last {
            Some((farthest, back)) if place.atom <= farthest => (GROWTH * back).max(1),
            // The reason may be its own x or y.
            _ => usize::from(!place.has_numbers),
        };
        let farthest = self.last.map_or(place.atom, |(farthest, _)| farthest.max(place.atom));
        self.last = Some((farthest, back));
        let target = farthest.saturating_sub(back).max(place.first).min(place.atom);
        self.rewritten += place.atom - target + 1;
        (self.rewritten <= times as usize * place.atoms).then_some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an atom of the second conformer of a molecule with ten atoms.
    fn at(atom: usize, has_numbers: bool) -> AtomPlace {
        AtomPlace { atom: 10 + atom, first: 10, atoms: 10, has_numbers }
    }

    #[test]
    fn a_text_goes_back_farther_until_it_comes_past_a_dead_end() {
        let mut ways = Backtracking::default();
        assert_eq!(ways.target(at(6, true), 6), Some(16));
        assert_eq!(ways.target(at(6, false), 6), Some(15));
        // An atom before the dead end counts as the same.
        assert_eq!(ways.target(at(5, true), 6), Some(13));
        assert_eq!(ways.target(at(6, true), 6), Some(10), "the beginning of the conformer");
        assert_eq!(ways.target(at(8, false), 6), Some(17), "past it, the way is short again");
        assert_eq!(ways.target(at(2, true), 6), Some(12), "no atom is left out");
    }

    #[test]
    fn what_is_written_in_vain_is_limited() {
        let tries = |times: u32| {
            let mut ways = Backtracking::default();
            (0..100).take_while(|_| ways.target(at(9, true), times).is_some()).count()
        };
        // 1, 2, 4 and 10 atoms, and 10 for each further attempt.
        assert_eq!([tries(0), tries(1), tries(2), tries(6)], [0, 3, 4, 8]);
    }
}
