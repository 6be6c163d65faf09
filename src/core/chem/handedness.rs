//! Which stereo marks of a SMILES a conformer agrees with, up to the symmetry of the molecule.
//!
//! Equal branches may change places: the two marks of `O[C@H]1CC[C@@H](C)CC1` only say that its substituents lie on opposite sides
//! of the ring, and with the ring's sides swapped, which are the same, both turn round. So the order of equal atoms is taken with which
//! most marks agree. Atoms are equal where RDKit's canonical SMILES has them so: the `=O` and the `[O-]` of a phosphate are not.

use super::labelled::LabelledGraph;
use super::search::{BondColours, Question, colours, isomorphisms};
use super::symmetry::{Factor, Symmetries};

/// Orders of equal atoms that are tried together; of more, those of one step each.
const MOST_ORDERS: u64 = 720;

/// Rounds through all groups of equal atoms: a change in one may be worth it only after another.
const ROUNDS: usize = 4;

/// Which atoms of a molecule may change places where marks look at them.
#[derive(Debug, Clone, Default)]
pub(super) struct Handedness {
    /// By group of equal atoms: orders, each as pairs of an atom and the one in whose place it stands.
    groups: Vec<Vec<Vec<(usize, usize)>>>,
}

/// Gives where an atom lies, in Å.
pub(super) type Place<'p> = dyn Fn(usize) -> [f64; 3] + 'p;

impl Handedness {
    pub(super) fn from_graph(graph: &LabelledGraph) -> Self {
        let marks = &graph.marks;
        if marks.is_empty() {
            return Handedness::default();
        }
        let centres =
            marks.centres.iter().flat_map(|mark| mark.neighbours.into_iter().flatten().chain([mark.atom]));
        let polyhedra =
            marks.polyhedra.iter().flat_map(|mark| mark.neighbours.iter().copied().chain([mark.atom]));
        let bonds = marks.double_bonds.iter().flat_map(|mark| mark.atoms.into_iter().chain(mark.neighbours));
        let looked_at: Vec<usize> = centres.chain(polyhedra).chain(bonds).collect();
        let matters = |factor: &Factor| factor.atoms.iter().any(|atom| looked_at.contains(atom));
        let factors = Symmetries::from_graph(graph).factors.into_iter().filter(matters);
        Handedness { groups: factors.map(|factor| orders(&factor)).collect() }
    }

    /// Which marks of the graph agree with a conformer in the order of equal atoms with which most do; the order of the text where no
    /// other is better.
    pub(super) fn agreement(&self, graph: &LabelledGraph, place: &Place<'_>) -> Vec<bool> {
        let own = graph.marks.agreement(place);
        if self.groups.is_empty() || is_complete(&own) {
            return own;
        }
        let mut all = AllMarks { graph, place, found: false };
        isomorphisms(graph, graph, &colours([graph; 2], BondColours::Counted), &mut all);
        if all.found { vec![true; own.len()] } else { self.most(graph, place, own) }
    }

    /// The agreement that is reached by changing places as long as that gains something.
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
                    let found = graph.marks.agreement(&|atom| place(moved[atom]));
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

/// Looks for an order of equal atoms with which all marks agree.
struct AllMarks<'g> {
    graph: &'g LabelledGraph,
    place: &'g Place<'g>,
    found: bool,
}

impl Question for AllMarks<'_> {
    fn allows(&mut self, last: usize, images: &[u32]) -> bool {
        self.graph.marks.agree_at(last, &|atom| (self.place)(images[atom] as usize))
    }

    fn found(&mut self, _: &[u32]) -> bool {
        self.found = true;
        false
    }
}

fn count(agreement: &[bool]) -> usize {
    agreement.iter().filter(|agrees| **agrees).count()
}

fn is_complete(agreement: &[bool]) -> bool {
    agreement.iter().all(|agrees| *agrees)
}

/// The orders of a group of equal atoms, without the identity.
fn orders(factor: &Factor) -> Vec<Vec<(usize, usize)>> {
    let pairs = |order: Vec<u16>| -> Vec<(usize, usize)> {
        let places = order.iter().map(|to| factor.atoms[usize::from(*to)]);
        factor.atoms.iter().copied().zip(places).filter(|(atom, to)| atom != to).collect()
    };
    factor.listed(MOST_ORDERS).into_iter().map(pairs).filter(|order| !order.is_empty()).collect()
}
