//! Which stereocentres and double bonds of a conformer are as the SMILES marks them, up to the symmetry of the molecule.
//!
//! Equal branches may change places: the two marks of `O[C@H]1CC[C@@H](C)CC1` only say that its substituents lie on opposite sides
//! of the ring, and with the ring's sides swapped, which are the same, both turn round. So the order of equal atoms is
//! taken with which most marks agree.

use crate::audit::symmetry::{Factor, Labelled, symmetries};
use crate::text::molecule::stereo::StereoMarks;
use crate::text::perceived::Perceived;
use crate::text::smiles::Graph;

/// Orders of equal atoms that are tried together; of more, those of one step each.
const MOST_ORDERS: u64 = 720;

/// Rounds through all groups of equal atoms: a change in one may be worth it only after another.
const ROUNDS: usize = 4;

/// The marks of a molecule, and which of its atoms may change places.
#[derive(Debug, Clone)]
pub(super) struct Handedness {
    pub marks: StereoMarks,
    /// By group of equal atoms that marks look at: orders, each as pairs of an atom and the one in whose place it stands.
    groups: Vec<Vec<Vec<(usize, usize)>>>,
}

/// Which marks agree: of stereocentres, then of double bonds.
pub(super) type Agreement = (Vec<bool>, Vec<bool>);

impl Handedness {
    /// Of a SMILES that was read before.
    pub(super) fn of(smiles: &str) -> Self {
        let marks = Graph::parse(smiles).map(|graph| StereoMarks::of(&graph)).unwrap_or_default();
        if marks.centres.is_empty() && marks.double_bonds.is_empty() {
            return Handedness { marks, groups: Vec::new() };
        }
        let centres =
            marks.centres.iter().flat_map(|mark| mark.neighbours.into_iter().flatten().chain([mark.atom]));
        let bonds = marks.double_bonds.iter().flat_map(|mark| mark.atoms.into_iter().chain(mark.neighbours));
        let looked_at: Vec<usize> = centres.chain(bonds).collect();
        let factors = Perceived::of(smiles).map(|molecule| symmetries(&Labelled::new(&molecule)).factors);
        let matters = |factor: &Factor| factor.atoms.iter().any(|atom| looked_at.contains(atom));
        let factors = factors.unwrap_or_default().into_iter().filter(matters);
        Handedness { groups: factors.map(|factor| orders(&factor)).collect(), marks }
    }

    /// Which marks agree with a conformer in the order of equal atoms with which most do; the order of the text where no other
    /// is better.
    pub(super) fn agreement(&self, points: &[[f64; 3]]) -> Agreement {
        let mut place: Vec<usize> = (0..points.len()).collect();
        let mut best = self.in_order(points, &place);
        for _ in 0..ROUNDS {
            let before = count(&best);
            for group in &self.groups {
                if is_complete(&best) {
                    return best;
                }
                let old = place.clone();
                for order in group {
                    let mut moved = old.clone();
                    order.iter().for_each(|(atom, to)| moved[*atom] = old[*to]);
                    let found = self.in_order(points, &moved);
                    if count(&found) > count(&best) {
                        (best, place) = (found, moved);
                    }
                }
            }
            if count(&best) == before {
                break;
            }
        }
        best
    }

    fn in_order(&self, points: &[[f64; 3]], place: &[usize]) -> Agreement {
        let at = |atom: usize| points[place[atom]];
        let centres = self.marks.centres.iter().map(|mark| mark.agrees(at) == Some(true));
        let bonds = self.marks.double_bonds.iter().map(|mark| mark.agrees(at) == Some(true));
        (centres.collect(), bonds.collect())
    }
}

fn count((centres, bonds): &Agreement) -> usize {
    centres.iter().chain(bonds).filter(|agrees| **agrees).count()
}

fn is_complete(agreement: &Agreement) -> bool {
    count(agreement) == agreement.0.len() + agreement.1.len()
}

/// The orders of a group of equal atoms, without the identity: all, or one step of each level where there are too many.
fn orders(factor: &Factor) -> Vec<Vec<(usize, usize)>> {
    let mut all: Vec<Vec<u16>> = vec![(0..factor.atoms.len() as u16).collect()];
    if factor.orders() <= MOST_ORDERS {
        for level in factor.levels.iter().rev() {
            let after = |choice: &Vec<u16>, order: &Vec<u16>| {
                order.iter().map(|to| choice[usize::from(*to)]).collect::<Vec<u16>>()
            };
            all = level.iter().flat_map(|choice| all.iter().map(move |order| after(choice, order))).collect();
        }
    } else {
        all.extend(factor.levels.iter().flatten().cloned());
    }
    let pairs = |order: Vec<u16>| -> Vec<(usize, usize)> {
        let places = order.iter().map(|to| factor.atoms[usize::from(*to)]);
        factor.atoms.iter().copied().zip(places).filter(|(atom, to)| atom != to).collect()
    };
    all.into_iter().map(pairs).filter(|order| !order.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flat ring of six with its first and fourth atom's substituents up or down.
    fn ring(up: [f64; 2]) -> Vec<[f64; 3]> {
        let at = |i: usize| {
            let angle = std::f64::consts::FRAC_PI_3 * i as f64;
            [1.5 * angle.cos(), 1.5 * angle.sin(), 0.0]
        };
        vec![[2.0, 0.0, 1.4 * up[0]], at(0), at(1), at(2), at(3), [-2.0, 0.0, 1.4 * up[1]], at(4), at(5)]
    }

    #[test]
    fn centres_that_only_say_how_they_lie_to_one_another() {
        let right = |smiles: &str, up: [f64; 2]| Handedness::of(smiles).agreement(&ring(up)).0;
        let cis = "O[C@H]1CC[C@@H](C)CC1";
        let trans = "O[C@H]1CC[C@H](C)CC1";
        for (one, other) in [(1.0, 1.0), (-1.0, -1.0)] {
            let (same, opposite) = ([one, other], [one, -other]);
            let (a, b) = (right(cis, same), right(cis, opposite));
            let (c, d) = (right(trans, same), right(trans, opposite));
            // Of the two texts each form agrees with one whole, and with half of the other.
            assert!(a != b && c != d && a == d && b == c, "{a:?} {b:?} {c:?} {d:?}");
            for found in [a, b] {
                assert!(found == [true, true] || found.iter().filter(|right| **right).count() == 1);
            }
        }
        // With two different ends of the ring nothing is equal: an inverted form is wrong.
        let lone = "O[C@H]1CO[C@@H](C)CC1";
        assert_ne!(right(lone, [1.0, 1.0]), right(lone, [-1.0, -1.0]));
    }

    #[test]
    fn arms_that_are_equal_may_change_places() {
        // Tartaric acid: meso has one of each hand.
        let meso = Handedness::of("OC(=O)[C@H](O)[C@@H](O)C(=O)O");
        assert!(!meso.groups.is_empty() && meso.marks.centres.len() == 2);
        assert!(Handedness::of("CCO").groups.is_empty());
    }
}
