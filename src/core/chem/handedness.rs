//! Which stereo marks of a SMILES agree with a conformer, up to the symmetry of the molecule.
//!
//! Equivalent branches may be exchanged. The two marks of `O[C@H]1CC[C@@H](C)CC1` only say that its substituents lie on opposite
//! sides of the ring; exchanging the two equal halves of the ring inverts both marks. So the result uses the order of equivalent
//! atoms in which most marks agree. Atoms are equivalent where RDKit's canonical SMILES treats them so: the `=O` and the `[O-]` of
//! a phosphate are not.

use std::collections::BTreeSet;

use super::labelled::LabelledGraph;
use super::polyhedra::PolyhedralMark;
use super::reading::SmilesReading;
use super::search::{BondColours, IdenticalAtoms, colours, first_of_colours};
use super::stereo::{DoubleBondMark, MarkImage, TetrahedralMark};
use super::symmetry::{Factor, Symmetries};

/// The largest number of orders of a group of equivalent atoms that are all tried. Of larger groups, only single steps are
/// tried.
const MOST_ORDERS: u64 = 720;

/// Rounds through all groups of equivalent atoms: a change in one group may pay off only after a change in another.
const ROUNDS: usize = 4;

/// The largest number of ways in which centres may be inverted together.
const MOST_INVERSIONS: usize = 64;

/// Which atoms near stereo marks may be exchanged.
#[derive(Debug, Clone, Default)]
pub(super) struct Handedness {
    /// By group of equivalent atoms: its orders, each as pairs of an atom and the atom whose place it takes.
    groups: Vec<Vec<Vec<(usize, usize)>>>,
}

/// The position of an atom, in Å.
pub(super) type Place<'p> = dyn Fn(usize) -> [f64; 3] + 'p;

impl Handedness {
    pub(super) fn from_graph(graph: &LabelledGraph) -> Self {
        let marks = &graph.marks;
        if marks.is_empty() {
            return Handedness::default();
        }
        let centres = marks.centres.iter().flat_map(TetrahedralMark::all);
        let polyhedra = marks.polyhedra.iter().flat_map(PolyhedralMark::all);
        let bonds = marks.double_bonds.iter().flat_map(DoubleBondMark::all);
        let looked_at: Vec<usize> = centres.chain(polyhedra).chain(bonds).collect();
        let matters = |factor: &Factor| factor.atoms.iter().any(|atom| looked_at.contains(atom));
        let factors = Symmetries::from_graph(graph).factors.into_iter().filter(matters);
        Handedness { groups: factors.map(|factor| orders(&factor)).collect() }
    }

    /// By mark of the graph, whether the conformer agrees, in the order of equivalent atoms in which most marks agree. The order of
    /// the text is used if no other is better.
    pub(super) fn agreement(&self, graph: &LabelledGraph, place: &Place<'_>) -> Vec<bool> {
        let own: Vec<bool> = graph.marks.agreement(place).collect();
        if self.groups.is_empty() || !own.contains(&false) {
            return own;
        }
        let all_agree =
            |last: usize, images: &[u32]| graph.marks.agree_at(last, &|atom| place(images[atom] as usize));
        let colours = colours([graph; 2], BondColours::Counted);
        match first_of_colours(graph, graph, &colours, &all_agree) {
            IdenticalAtoms::Order(_) => vec![true; own.len()],
            IdenticalAtoms::None | IdenticalAtoms::Unknown => self.most(graph, place, own),
        }
    }

    /// Returns the ways in which exchanges of equivalent atoms invert centres of the graph together, each as a mark for each centre.
    /// Whoever inverts the centres so has the same molecule. One way inverts none. Exchanges that also invert a double bond are left
    /// out, and those beyond [`MOST_INVERSIONS`] ways.
    pub(super) fn inversions(&self, graph: &LabelledGraph) -> BTreeSet<Vec<bool>> {
        let marks = &graph.marks;
        let own: Exchange = (0..marks.centres.len()).map(|at| (at, false)).collect();
        let mut found = BTreeSet::from([own]);
        for group in self.groups.iter().filter(|_| marks.polyhedra.is_empty()) {
            let exchanges: BTreeSet<Exchange> =
                group.iter().filter_map(|order| exchange(graph, order)).collect();
            let both = found.iter().flat_map(|one| exchanges.iter().map(|other| after(one, other)));
            let both: BTreeSet<Exchange> = found.iter().cloned().chain(both).collect();
            if both.len() > MOST_INVERSIONS {
                break;
            }
            found = both;
        }
        found.into_iter().map(inverted_by_centre).collect()
    }

    /// Returns the best agreement found by greedy exchanges of equivalent atoms, as long as they gain something.
    fn most(&self, graph: &LabelledGraph, place: &Place<'_>, own: Vec<bool>) -> Vec<bool> {
        let mut best = own;
        let mut places: Vec<usize> = (0..graph.labels.len()).collect();
        for _ in 0..ROUNDS {
            let before = count(&best);
            for group in &self.groups {
                let old = places.clone();
                for order in group {
                    let mut moved = old.clone();
                    order.iter().for_each(|(atom, to)| moved[*atom] = old[*to]);
                    let found: Vec<bool> = graph.marks.agreement(&|atom| place(moved[atom])).collect();
                    if count(&found) > count(&best) {
                        (best, places) = (found, moved);
                    }
                }
            }
            if count(&best) == before {
                break;
            }
        }
        best
    }
}

impl SmilesReading<'_> {
    /// Returns the ways in which its stereocentres may be inverted together without making another molecule, each as a mark for each
    /// centre of [`SmilesReading::marks`]. The two centres of `O[C@H]1CC[C@@H](C)CC1` may be inverted together, because only their
    /// relation has a meaning. One way inverts none.
    pub fn inversions(&self) -> BTreeSet<Vec<bool>> {
        let centres = self.marks().centres.len();
        if centres > 1
            && let Ok((graph, _)) = LabelledGraph::of_reading(self)
            && graph.marks == *self.marks()
        {
            return Handedness::from_graph(&graph).inversions(&graph);
        }
        [vec![false; centres]].into()
    }
}

/// By centre, the centre whose place it takes, and whether that is inverted.
type Exchange = Vec<(usize, bool)>;

/// Returns what an order of atoms does to the centres of a graph; `None` if it moves one to an atom without a mark, or inverts a double
/// bond.
fn exchange(graph: &LabelledGraph, order: &[(usize, usize)]) -> Option<Exchange> {
    let image = |atom: usize| order.iter().find(|(from, _)| *from == atom).map_or(atom, |(_, to)| *to);
    let marks = &graph.marks;
    let keeps = |image: Option<MarkImage>| image.is_some_and(|image| !image.inverted);
    if !marks.double_bonds.iter().all(|mark| keeps(mark.image_in(&marks.double_bonds, &image))) {
        return None;
    }
    let images = marks.centres.iter().map(|mark| mark.image_in(&marks.centres, &image));
    images.map(|image| image.map(|MarkImage { index, inverted }| (index, inverted))).collect()
}

/// Returns for each centre whether it is inverted.
fn inverted_by_centre(exchange: Exchange) -> Vec<bool> {
    let mut inverted = vec![false; exchange.len()];
    exchange.into_iter().for_each(|(centre, is_inverted)| inverted[centre] = is_inverted);
    inverted
}

/// Returns one exchange followed by another.
fn after(one: &Exchange, other: &Exchange) -> Exchange {
    let step = |&(centre, inverted): &(usize, bool)| (other[centre].0, other[centre].1 ^ inverted);
    one.iter().map(step).collect()
}

fn count(agreement: &[bool]) -> usize {
    agreement.iter().filter(|agrees| **agrees).count()
}

/// Returns the orders of a group of equivalent atoms, without the identity, as pairs of an atom and the atom whose place it takes.
fn orders(factor: &Factor) -> Vec<Vec<(usize, usize)>> {
    let orders = factor.listed(MOST_ORDERS).into_iter().map(|order| {
        let places = order.iter().map(|to| factor.atoms[usize::from(*to)]);
        factor.atoms.iter().copied().zip(places).filter(|(atom, to)| atom != to).collect()
    });
    orders.filter(|order: &Vec<_>| !order.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::limit::AtomLimit;
    use super::*;

    #[test]
    fn centres_are_inverted_together_by_exchanges_of_equivalent_atoms() {
        let ways = |smiles: &str| -> Vec<Vec<bool>> {
            SmilesReading::new(smiles, AtomLimit::default()).unwrap().inversions().into_iter().collect()
        };
        let (none, both) = (vec![false; 2], vec![true; 2]);
        assert_eq!(ways("O[C@H]1CC[C@@H](C)CC1"), [none.clone(), both.clone()]);
        assert_eq!(ways("C[C@H]1C[C@@H](C)C1"), [none.clone(), both]);
        // Each of these has its own hand, and the exchange of the two halves of tartaric acid inverts none.
        for own in ["C[C@H](F)[C@H](F)Cl", "OC(=O)[C@H](O)[C@@H](O)C(=O)O", "C[C@H]1CCC[C@@H](F)C1"] {
            assert_eq!(ways(own), std::slice::from_ref(&none), "{own}");
        }
        // The two rings are inverted each on its own.
        let rings = ways("O[C@H]1CC[C@@H](CC1)C[C@H]1CC[C@@H](F)CC1");
        assert_eq!(rings.len(), 4, "{rings:?}");
        assert!(rings.iter().all(|way| way[0] == way[1] && way[2] == way[3]), "{rings:?}");
        assert_eq!(ways("C[C@H](F)Cl"), [[false]]);
    }
}
