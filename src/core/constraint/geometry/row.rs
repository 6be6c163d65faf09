//! The coordinates that a row has written, and the tokens that they leave.

use super::GeometryConstraint;
use super::cursor::{Cursor, WrittenNumber};
use crate::constraint::{Constraint, Mask, State};
use crate::encoding::{Fixed, ValueRange};
use crate::geometry::{Intervals, Outlook};

/// What a row of generated text has written of a molecule's geometry. It follows the tokens of the row, like a [`State`].
#[derive(Debug, Clone)]
pub struct GeometryRow {
    cursor: Cursor,
    /// The positions of the atoms of the conformer that is being written, in Å.
    placed: Vec<[f64; 3]>,
    /// What the atom that is being written is held to.
    hold: Hold,
    /// The region of the next atom and the places of those after it, once they were needed.
    outlook: Option<Outlook>,
    /// The allowed values of numbers of this atom, by what was written before them.
    sets: Vec<(Numbers, Intervals)>,
}

/// What an atom is held to. After a place where no token is left, it is less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// All rules.
    Rules,
    /// The signs of centres and double bonds.
    Signs,
    /// Nothing but the automaton.
    Nothing,
}

/// An atom of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomPlace {
    /// Its index, over all conformers.
    pub atom: usize,
    /// The index of the first atom of its conformer.
    pub first: usize,
    /// The number of atoms of a conformer.
    pub atoms: usize,
    /// Whether a part of its numbers has been written.
    pub has_numbers: bool,
}

/// A number of an atom: its axis, and the values before it.
type Numbers = (usize, [Fixed; 2]);

/// The most sets that are kept for an atom.
const MOST_SETS: usize = 64;

/// If more tokens are tried, the allowed values are computed first.
const MANY_TOKENS: usize = 16;

/// The most values of y in an interval of which each is tried: if there are more, some of them has a z.
const MOST_TRIED: Fixed = 200;

impl GeometryRow {
    /// Returns a row that has written nothing.
    pub(super) fn new() -> Self {
        GeometryRow {
            cursor: Cursor::start(),
            placed: Vec::new(),
            hold: Hold::Rules,
            outlook: None,
            sets: Vec::new(),
        }
    }

    /// Takes a token that was written.
    pub fn write(&mut self, constraint: &GeometryConstraint, token: u32) {
        for byte in constraint.texts.bytes(token) {
            let slot = self.cursor.slot;
            self.cursor.step(*byte, &constraint.text);
            if self.cursor.slot > slot {
                self.add_position(constraint, slot);
            }
        }
    }

    /// Returns the atom whose numbers are being written.
    pub fn place(&self, constraint: &GeometryConstraint) -> AtomPlace {
        let (atom, atoms) = (self.cursor.slot, constraint.text.atoms);
        let has_numbers = self.cursor.axis > 0 || !self.cursor.prefix().is_empty();
        AtomPlace { atom, first: atom - atom % atoms, atoms, has_numbers }
    }

    /// Adds the position of the atom of a slot.
    fn add_position(&mut self, constraint: &GeometryConstraint, slot: usize) {
        if slot.is_multiple_of(constraint.text.atoms) {
            self.placed.clear();
        }
        // Only encodings whose numbers stand for coordinates are accepted.
        self.placed.extend(constraint.text.encoding.angstrom(&self.cursor.values));
        self.hold(Hold::Rules);
    }

    /// Holds the atom that is being written to less, where no token was left: to the signs of centres and double bonds alone, and then
    /// to nothing but the automaton.
    pub fn release(&mut self) {
        self.hold(if self.hold == Hold::Rules { Hold::Signs } else { Hold::Nothing });
    }

    fn hold(&mut self, hold: Hold) {
        self.hold = hold;
        self.outlook = None;
        self.sets.clear();
    }

    /// Returns the tokens that automaton and geometry allow in a state; `None` if the geometry leaves what the automaton allows. The list
    /// may be empty: then no number can be written that the positions so far allow, until [`release`](Self::release).
    pub fn allowed(&mut self, constraint: &GeometryConstraint, state: &State) -> Option<Vec<u32>> {
        // A single token of the automaton begins each number that is allowed, because such numbers exist where it was reached.
        let Mask::Only(ids) = constraint.automaton.mask(state) else { return None };
        if self.hold == Hold::Nothing {
            return None;
        }
        if ids.len() > MANY_TOKENS {
            let Cursor { axis, values, .. } = self.cursor;
            self.set(constraint, (axis, [values[0], values[1]]));
        }
        let allowed = ids.iter().copied().filter(|id| self.allows(constraint, state, *id));
        Some(allowed.collect())
    }

    /// Returns whether the geometry allows a token that the automaton allows: some number that it begins, continues or ends is allowed.
    pub fn allows(&mut self, constraint: &GeometryConstraint, state: &State, token: u32) -> bool {
        if self.hold == Hold::Nothing {
            return true;
        }
        let mut cursor = self.cursor;
        for byte in constraint.texts.bytes(token) {
            let (slot, before) = (cursor.slot, cursor.values);
            if let Some(WrittenNumber { axis, value }) = cursor.step(*byte, &constraint.text)
                && slot == self.cursor.slot
                && !self.accepts(constraint, (axis, [before[0], before[1]]), value)
            {
                return false;
            }
        }
        // A token that goes on into the next atom is judged by what it ends.
        if cursor.slot != self.cursor.slot || cursor.slot >= constraint.text.slots() {
            return true;
        }
        let (axis, format) = (cursor.axis, constraint.text.encoding.number());
        let number = (axis, [cursor.values[0], cursor.values[1]]);
        if let [[value, last]] = format.completions(cursor.prefix(), axis)[..]
            && value == last
        {
            return self.accepts(constraint, number, value);
        }
        // A token without digits matters too: `,` may only be followed by a number without sign, if there is a token `,-`.
        let set = self.set(constraint, number).clone();
        let mut then = *state;
        constraint.automaton.advance(&mut then, token);
        constraint.completes(cursor, &then, &set) && self.leaves_later_atoms(constraint, cursor)
    }

    /// Returns whether a value is allowed for a number, and leaves a value for the next number of the atom, or a place for all later
    /// atoms.
    fn accepts(&mut self, constraint: &GeometryConstraint, number: Numbers, value: Fixed) -> bool {
        let (axis, [x, _]) = number;
        // Cheaper than to look for the next number, but only if many values are tried.
        if self.known_set(number).is_some_and(|set| !holds(constraint, set, axis, [value; 2])) {
            return false;
        }
        let leaves_a_number = match axis {
            0 => self.leaves_y(constraint, value),
            1 => self.leaves_z(constraint, [x, value]),
            _ => holds(constraint, self.set(constraint, number), axis, [value; 2]),
        };
        // A digit before the last one of x or y has asked nearly the same; a bin would ask for each of many others.
        leaves_a_number && (axis < 2 || self.leaves_places(constraint, number, [value; 2]))
    }

    /// Returns whether the x of an atom leaves a y and a z. If there are more y than are tried, it is taken to leave one.
    fn leaves_y(&mut self, constraint: &GeometryConstraint, x: Fixed) -> bool {
        let format = constraint.text.encoding.number();
        let (low, high) = format.limits(1);
        // Not kept, because most of the values that are tried are not written.
        let set = self.computed(constraint, (1, [x, 0]));
        let mut tails = [low, high].into_iter().filter(|end| format.is_tail(*end, 1));
        let mut ranges = set.parts().iter().filter_map(|part| format.values_inside([low, high], 1, *part));
        tails.any(|end| holds(constraint, &set, 1, [end; 2]))
            || ranges.any(|[first, last]| {
                last - first > MOST_TRIED || (first..=last).any(|y| self.leaves_z(constraint, [x, y]))
            })
    }

    /// Returns whether the x and y of an atom leave a z.
    fn leaves_z(&mut self, constraint: &GeometryConstraint, values: [Fixed; 2]) -> bool {
        let (low, high) = constraint.text.encoding.number().limits(2);
        let set = self.computed(constraint, (2, values));
        holds(constraint, &set, 2, [low, high])
    }

    /// Returns whether some number that a place is the beginning of leaves a place for each atom that is not yet written.
    fn leaves_later_atoms(&mut self, constraint: &GeometryConstraint, cursor: Cursor) -> bool {
        let ranges = constraint.text.encoding.number().completions(cursor.prefix(), cursor.axis);
        let number = (cursor.axis, [cursor.values[0], cursor.values[1]]);
        ranges.into_iter().any(|range| self.leaves_places(constraint, number, range))
    }

    /// Returns whether some value of a range leaves a place for each atom that is not yet written, next to those that are.
    fn leaves_places(&mut self, constraint: &GeometryConstraint, number: Numbers, range: ValueRange) -> bool {
        let ((axis, before), [first, last]) = (number, range);
        let format = constraint.text.encoding.number();
        let at = |axis: usize, value: Fixed| format.angstrom(value, axis).unwrap_or_default();
        let mut bounds = [[f64::NEG_INFINITY, f64::INFINITY]; 3];
        for (axis, value) in before.into_iter().enumerate().take(axis) {
            bounds[axis] = [at(axis, value); 2];
        }
        // Tails may stand for coordinates out of order.
        if first == last || ![first, last].into_iter().any(|end| format.is_tail(end, axis)) {
            bounds[axis] = [at(axis, first), at(axis, last)];
        }
        let rules = &constraint.rules;
        let outlook = self.outlook(constraint);
        match axis == 2 && first == last {
            true => outlook.leaves_places_beside(rules, bounds.map(|[x, _]| x)),
            false => outlook.leaves_places(rules, bounds),
        }
    }

    /// Returns the region of the next atom and the places of those after it.
    fn outlook(&mut self, constraint: &GeometryConstraint) -> &mut Outlook {
        let (rules, placed) = (&constraint.rules, so_far(&self.placed, self.cursor, constraint));
        self.outlook.get_or_insert_with(|| match self.hold {
            Hold::Signs => Outlook::of_signs(rules, placed),
            _ => Outlook::new(rules, placed),
        })
    }

    /// Returns the allowed values of a number of the current atom, in Å, if they are known.
    fn known_set(&self, number: Numbers) -> Option<&Intervals> {
        let number = written_before(number);
        self.sets.iter().find(|(known, _)| *known == number).map(|(_, set)| set)
    }

    /// Returns the allowed values of a number of the current atom, in Å.
    fn set(&mut self, constraint: &GeometryConstraint, number: Numbers) -> &Intervals {
        let number = written_before(number);
        if let Some(at) = self.sets.iter().position(|(known, _)| *known == number) {
            return &self.sets[at].1;
        }
        let set = self.computed(constraint, number);
        if self.sets.len() >= MOST_SETS {
            self.sets.clear();
        }
        self.sets.push((number, set));
        &self.sets[self.sets.len() - 1].1
    }

    /// Returns the allowed values of a number of the current atom, in Å.
    fn computed(&mut self, constraint: &GeometryConstraint, (axis, values): Numbers) -> Intervals {
        let format = constraint.text.encoding.number();
        let region = self.outlook(constraint).region();
        let at = |axis: usize| format.angstrom(values[axis], axis).unwrap_or_default();
        match axis {
            0 => region.x(),
            1 => region.y(at(0)),
            _ => region.z(at(0), at(1)),
        }
    }
}

/// Returns a number with only the values before it.
fn written_before(number: Numbers) -> Numbers {
    let (axis, [x, y]) = number;
    (axis, [if axis > 0 { x } else { 0 }, if axis > 1 { y } else { 0 }])
}

/// Returns the positions of the conformer that is being written, given those placed last.
fn so_far<'p>(placed: &'p [[f64; 3]], cursor: Cursor, constraint: &GeometryConstraint) -> &'p [[f64; 3]] {
    // The atoms of the conformer before do not count.
    if cursor.slot.is_multiple_of(constraint.text.atoms) { &[] } else { placed }
}

/// Returns whether the coordinate of some value of a range lies in a set.
pub(super) fn holds(
    constraint: &GeometryConstraint,
    set: &Intervals,
    axis: usize,
    range: ValueRange,
) -> bool {
    let format = constraint.text.encoding.number();
    set.parts().iter().any(|part| format.reaches(range, axis, *part))
}
