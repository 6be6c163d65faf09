//! Stereocentres: atoms with `@` or `@@`, and the handedness that coordinates give them.

use super::MarkImage;
use crate::chem::graph::{Chirality, Graph, Order};
use crate::vector::{minus, triple};

/// Three bonds that span less than this volume, in Å³, count as planar: RDKit's limit.
const FLAT_CUBIC_ANGSTROM: f64 = 0.1;

/// An atom that is written with `@` or `@@`. Atoms are numbered in the order of the text, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TetrahedralMark {
    /// The atom.
    pub atom: usize,
    /// Its neighbours in the order of the text, but of four atoms those across ring bonds come last, by their ring-closure
    /// numbers, as in RDKit, and a hydrogen behind them; `None` for an implied hydrogen or a lone pair. Of both, as in `C[P@H]CC`, the lone pair comes first.
    pub neighbours: [Option<usize>; 4],
    /// Whether a lone pair is among its neighbours.
    pub has_lone_pair: bool,
    /// Whether the other neighbours appear counterclockwise from the first one.
    pub counterclockwise: bool,
}

impl TetrahedralMark {
    /// Returns the mark of an atom, if it has one and three or four neighbours, implied hydrogens included. Of an atom with two
    /// neighbours and a hydrogen, the fourth one is a lone pair.
    pub(super) fn from_graph(graph: &Graph, atom: usize) -> Option<Self> {
        let mut counterclockwise = match graph.atoms[atom].chirality? {
            Chirality::Counterclockwise => true,
            Chirality::Clockwise => false,
            _ => return None,
        };
        let mut bonds = graph.written[atom].clone();
        // Far from a tetrahedron three bonds may have another sense than another three. RDKit looks at its first three. It adds ring
        // bonds behind all others, by their numbers, and removes hydrogens.
        if let Ok(four) = <[usize; 4]>::try_from(&bonds[..]) {
            let is_hydrogen = |bond: usize| graph.atoms[graph.bonds[bond].other(atom)].is_protium();
            let late =
                |bond: usize| (is_hydrogen(bond), graph.ring_bonds.iter().position(|ring| *ring == bond));
            counterclockwise ^= is_odd(four.map(late));
            bonds.sort_by_key(|bond| late(*bond));
        }
        let hydrogens = graph.atoms[atom].hydrogens;
        let mut order: Vec<Option<usize>> =
            bonds.iter().map(|bond| Some(graph.bonds[*bond].other(atom))).collect();
        match (order.len(), hydrogens) {
            (4, 0) => {}
            (3, 0 | 1) => order.insert(usize::from(!is_implied_first(graph, atom)), None),
            // RDKit adds the hydrogen behind both neighbours.
            (2, 1) => order.extend([None, None]),
            _ => return None,
        }
        if order.len() == 4 && bonds.len() == 2 {
            order.swap(1, 2);
        }
        let has_lone_pair = bonds.len() + hydrogens as usize == 3;
        let neighbours = order.try_into().ok()?;
        Some(TetrahedralMark { atom, neighbours, has_lone_pair, counterclockwise })
    }

    /// Returns the mark with other numbers; `places` has the new index of each kept atom. A removed hydrogen becomes implied. `None` if
    /// the atom is removed, or if more than one hydrogen is implied then.
    pub(super) fn renumbered(&self, places: &[Option<usize>]) -> Option<Self> {
        let mut mark = *self;
        mark.atom = places[self.atom]?;
        // A lone pair stays where it is, and a hydrogen behind it. If the hydrogen was before it, both change places.
        let lone_pair = self.neighbours.iter().position(Option::is_none).filter(|_| self.has_lone_pair);
        mark.neighbours = self.neighbours.map(|atom| places[atom?]);
        let missing = (0..4).filter(|at| mark.neighbours[*at].is_none()).collect::<Vec<_>>();
        if missing.len() > 1 + usize::from(self.has_lone_pair) {
            return None;
        }
        mark.counterclockwise ^= missing.len() == 2 && lone_pair != missing.first().copied();
        Some(mark)
    }

    /// Returns the mark with the number of its hydrogen, if this is implied beside a lone pair.
    pub(in crate::chem) fn with_hydrogen(mut self, hydrogen: usize) -> Self {
        let last = self.neighbours.iter().rposition(Option::is_none).filter(|_| self.needs_hydrogen());
        last.into_iter().for_each(|at| self.neighbours[at] = Some(hydrogen));
        self
    }

    /// Returns whether its handedness depends on the place of an implied hydrogen: three neighbours alone are not enough.
    pub(crate) fn needs_hydrogen(&self) -> bool {
        self.neighbours.iter().flatten().count() < 3
    }

    /// Returns whether the neighbours go round counterclockwise in the order of their ranks, a hydrogen first and a lone pair last.
    pub(in crate::chem) fn is_counterclockwise_by(&self, ranks: &[usize]) -> bool {
        let lone_pair = self.neighbours.iter().position(Option::is_none).filter(|_| self.has_lone_pair);
        self.counterclockwise
            ^ is_odd(std::array::from_fn(|at| match self.neighbours[at] {
                Some(atom) => ranks[atom] + 1,
                None if lone_pair == Some(at) => usize::MAX,
                None => 0,
            }))
    }

    /// Returns whether coordinates agree; `None` if the bonds are planar. `place` gives the position of an atom in Å.
    pub fn agrees(&self, place: impl Fn(usize) -> [f64; 3]) -> Option<bool> {
        let neighbours = self.neighbours.map(|atom| atom.map(&place));
        Some(is_counterclockwise(place(self.atom), neighbours)? == self.counterclockwise)
    }

    /// Returns the atom and its neighbours.
    pub(in crate::chem) fn all(&self) -> impl Iterator<Item = usize> {
        self.neighbours.into_iter().flatten().chain([self.atom])
    }

    /// Returns the mark that the image of this atom has in another molecule; `None` if the image has none.
    pub(in crate::chem) fn image_in(
        &self,
        others: &[TetrahedralMark],
        image: &dyn Fn(usize) -> usize,
    ) -> Option<MarkImage> {
        let index = others.iter().position(|other| other.atom == image(self.atom))?;
        // The implied neighbour sorts last.
        let ranks = |neighbours: [Option<usize>; 4]| neighbours.map(|atom| atom.unwrap_or(usize::MAX));
        let (moved, there) = (self.neighbours.map(|atom| atom.map(image)), others[index].neighbours);
        let is_moved = is_odd(ranks(moved)) ^ is_odd(ranks(there));
        let inverted = self.counterclockwise ^ others[index].counterclockwise ^ is_moved;
        Some(MarkImage { index, inverted })
    }
}
/// Returns whether the last three of four neighbours appear counterclockwise from the first. Positions are in Å; one neighbour may be
/// missing (an implied hydrogen or a lone pair). `None` if the bonds are planar.
pub(crate) fn is_counterclockwise(centre: [f64; 3], neighbours: [Option<[f64; 3]>; 4]) -> Option<bool> {
    let bonds = neighbours.map(|place| place.map(|place| minus(place, centre)));
    let left_out = bonds.iter().position(Option::is_none);
    // Three planar bonds decide nothing, so another three are tried.
    let candidates = left_out.map_or([3, 2, 1, 0], |at| [at; 4]);
    let volumes = candidates.into_iter().filter_map(|left_out| volume(bonds, left_out));
    Some(volumes.into_iter().find(|volume| volume.abs() > FLAT_CUBIC_ANGSTROM)? > 0.0)
}

/// Returns the signed volume that three of four bonds span, in Å³; `None` if one of them is missing.
fn volume(bonds: [Option<[f64; 3]>; 4], left_out: usize) -> Option<f64> {
    let mut rest = (0..4).filter(|at| *at != left_out).map(|at| bonds[at]);
    let volume = triple(rest.next()??, rest.next()??, rest.next()??);
    // An even number of neighbours before the missing one keeps the sense.
    Some(if left_out.is_multiple_of(2) { -volume } else { volume })
}

/// Returns whether an odd number of swaps of neighbours sorts them by their ranks.
fn is_odd<R: Ord>(ranks: [R; 4]) -> bool {
    let pairs = (0..4).flat_map(|i| (i + 1..4).map(move |j| (i, j)));
    pairs.filter(|(i, j)| ranks[*i] > ranks[*j]).count() % 2 == 1
}

/// Returns whether the implied neighbour of an atom with three bonds comes before them; otherwise it comes behind the first. A hydrogen
/// stands where it is written. OpenSMILES puts a lone pair there too, but programs that write SMILES follow RDKit, which puts it behind
/// the first neighbour even of a first atom, and before it if a saturated atom has one ring number (`chiralAtomNeedsTagInversion` in
/// `Code/GraphMol/Canon.cpp`).
fn is_implied_first(graph: &Graph, atom: usize) -> bool {
    if graph.atoms[atom].hydrogens > 0 {
        return graph.starts[atom];
    }
    let bonds = &graph.written[atom];
    let saturated = bonds
        .iter()
        .all(|bond| matches!(graph.bonds[*bond].order, Order::Single | Order::Dative | Order::Any));
    saturated && bonds.iter().filter(|bond| graph.ring_bonds.contains(bond)).count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chem::stereo::StereoMarks;

    fn marks(smiles: &str) -> StereoMarks {
        StereoMarks::from_graph(&Graph::parse(smiles).unwrap())
    }

    #[test]
    fn neighbours_in_the_order_of_the_text() {
        let centre = |smiles| marks(smiles).centres[0];
        let order = |smiles| centre(smiles).neighbours;
        assert_eq!(order("N[C@@H](C)O"), [Some(0), None, Some(2), Some(3)]);
        assert_eq!(order("[C@H](N)(C)O"), [None, Some(1), Some(2), Some(3)]);
        assert_eq!(order("N[C@](F)(C)O"), [Some(0), Some(2), Some(3), Some(4)]);
        // Of four atoms those across ring bonds come last, by their numbers, as `Atom.GetBonds` of RDKit has them.
        assert_eq!(order("N[C@@]1(C)OCC1"), [Some(0), Some(2), Some(3), Some(5)]);
        assert_eq!(order("C1.[C@]1(F)(Cl)Br"), [Some(2), Some(3), Some(4), Some(0)]);
        for text in ["C1CC2CC[C@@]12C", "C2CC1CC[C@@]21C", "C1CC2CC[C@]21C"] {
            let ring = if text.starts_with("C1") { [0, 2] } else { [2, 0] };
            assert_eq!(order(text), [4, 6, ring[0], ring[1]].map(Some), "{text}");
        }
        // The methyl passes two ring bonds, which keeps the sense; in the second text the ring bonds change places, too.
        assert!(!centre("C1CC2CC[C@@]12C").counterclockwise && !centre("C1CC2CC[C@]21C").counterclockwise);
        assert_eq!(order("C[S@](=O)CC"), [Some(0), None, Some(2), Some(3)]);
        // A lone pair, as RDKit has it.
        assert_eq!(order("[S@](=O)(C)CC"), [Some(1), None, Some(2), Some(3)]);
        assert_eq!(order("C[S@@+]1CCC1C"), [None, Some(0), Some(4), Some(2)]);
        assert_eq!(order("C1CC[S@+]1[O-]"), [None, Some(2), Some(0), Some(4)]);
        assert_eq!(order("O=[S@]1CCC1C"), [Some(0), None, Some(4), Some(2)]);
        assert!(centre("[C@TH1H](F)(Cl)Br").counterclockwise && !centre("[C@@H](F)(Cl)Br").counterclockwise);
        assert_eq!(marks("C[C@H2]C").centres, []);
        assert_eq!(marks("C[Pt@OH1](F)(Cl)Br").centres, []);
    }

    #[test]
    fn coordinates_have_a_sense() {
        let up = [0.0, 0.0, 1.5];
        let around = [[1.4, 0.0, -0.5], [-0.7, 1.2, -0.5], [-0.7, -1.2, -0.5]].map(Some);
        let seen = |neighbours| is_counterclockwise([0.0; 3], neighbours);
        let [a, b, c] = around;
        // From above, a, b and c go round counterclockwise.
        assert_eq!(seen([Some(up), a, b, c]), Some(true));
        assert_eq!(seen([None, a, b, c]), Some(true));
        assert_eq!(seen([Some(up), None, b, c]), Some(true));
        assert_eq!(seen([Some(up), a, None, c]), Some(true));
        assert_eq!(seen([Some(up), a, b, None]), Some(true));
        assert_eq!(seen([Some(up), b, a, c]), Some(false));
        assert_eq!(seen([a, Some(up), b, c]), Some(false));
        assert_eq!(
            seen([None, Some([1.0, 0.0, 0.0]), Some([0.0, 1.0, 0.0]), Some([-1.0, -1.0, 0.01])]),
            None
        );
    }
}
