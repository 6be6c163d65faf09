//! Stereo marks of a SMILES, and the stereo of coordinates.
//!
//! In a text `@` counts neighbours in the order of the text (OpenSMILES 1.0, section 3.9). The stereo of coordinates follows RDKit's
//! `assignChiralTypesFrom3D` and `setDoubleBondNeighborDirections` (`Code/GraphMol/Chirality.cpp`).

use super::graph::{Bond, Chirality, Direction, Graph, Order};
use super::polyhedra::PolyhedralMark;
use crate::vector::{cross, dot, minus, triple};

/// Three bonds that span less than this volume, in Å³, count as planar: RDKit's limit.
const FLAT_CUBIC_ANGSTROM: f64 = 0.1;

/// An atom that is written with `@` or `@@`. Atoms are numbered in the order of the text, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TetrahedralMark {
    /// The atom.
    pub atom: usize,
    /// Its neighbours in the order of the text, but of four atoms those across ring bonds come last, by their ring-closure
    /// numbers, as in RDKit; `None` for an implied hydrogen or a lone pair.
    pub neighbours: [Option<usize>; 4],
    /// Whether the other neighbours appear counterclockwise from the first one.
    pub counterclockwise: bool,
}

/// A double bond with `/` or `\` on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoubleBondMark {
    /// Its atoms.
    pub atoms: [usize; 2],
    /// One neighbour of each atom.
    pub neighbours: [usize; 2],
    /// Whether these two neighbours lie on the same side.
    pub together: bool,
}

/// The marks of a SMILES.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StereoMarks {
    /// Stereocentres.
    pub centres: Vec<TetrahedralMark>,
    /// Double bonds.
    pub double_bonds: Vec<DoubleBondMark>,
    /// Square-planar, trigonal-bipyramidal and octahedral atoms.
    pub polyhedra: Vec<PolyhedralMark>,
    /// Marked atoms that are not compared with coordinates: allenes, and polyhedra with missing neighbours.
    pub unchecked: Vec<usize>,
}

impl StereoMarks {
    /// The marks of a graph as written. Marks without meaning are left out: at an atom with two bonds, or on one side of a double
    /// bond only.
    pub fn from_graph(graph: &Graph) -> Self {
        if graph.written.len() != graph.atoms.len() {
            return StereoMarks::default();
        }
        let centres = (0..graph.atoms.len()).filter_map(|atom| centre(graph, atom)).collect();
        let is_double = |bond: &&Bond| bond.order == Order::Double;
        let double_bonds =
            graph.bonds.iter().filter(is_double).filter_map(|bond| double_bond(graph, bond.atoms)).collect();
        let (mut polyhedra, mut unchecked) = (Vec::new(), Vec::new());
        for atom in 0..graph.atoms.len() {
            let Some(chirality) = graph.atoms[atom].chirality else { continue };
            if !matches!(chirality, Chirality::Counterclockwise | Chirality::Clockwise) {
                let neighbours = graph.written[atom].iter().map(|bond| graph.bonds[*bond].other(atom));
                match PolyhedralMark::new(atom, chirality, neighbours.collect()) {
                    Some(mark) => polyhedra.push(mark),
                    None => unchecked.push(atom),
                }
            }
        }
        StereoMarks { centres, double_bonds, polyhedra, unchecked }
    }

    /// Whether there is no mark to compare.
    pub fn is_empty(&self) -> bool {
        self.centres.is_empty() && self.double_bonds.is_empty() && self.polyhedra.is_empty()
    }

    /// By mark, whether coordinates agree, in the order stereocentres, polyhedra, double bonds. `place` gives the position of an
    /// atom in Å.
    pub(super) fn agreement(&self, place: &dyn Fn(usize) -> [f64; 3]) -> impl Iterator<Item = bool> {
        let centres = self.centres.iter().map(move |mark| mark.agrees(place));
        let polyhedra = self.polyhedra.iter().map(move |mark| mark.agrees(place));
        let bonds = self.double_bonds.iter().map(move |mark| mark.agrees(place));
        centres.chain(polyhedra).chain(bonds).map(|agrees| agrees == Some(true))
    }

    /// Whether coordinates agree with each mark that becomes complete when the atom `last` is placed; atoms are placed by ascending
    /// number.
    pub(super) fn agree_at(&self, last: usize, place: &dyn Fn(usize) -> [f64; 3]) -> bool {
        let is_due = |atoms: &mut dyn Iterator<Item = usize>| atoms.max() == Some(last);
        self.centres.iter().all(|mark| !is_due(&mut mark.all()) || mark.agrees(place) == Some(true))
            && self.polyhedra.iter().all(|mark| !is_due(&mut mark.all()) || mark.agrees(place) == Some(true))
            && self
                .double_bonds
                .iter()
                .all(|mark| !is_due(&mut mark.all()) || mark.agrees(place) == Some(true))
    }

    /// The remaining marks after some atoms are removed; `places` has the new index of each kept atom. A removed hydrogen of a
    /// stereocentre becomes implied. If a removed hydrogen was the neighbour of a double bond, the other neighbour replaces it, on
    /// the opposite side.
    pub(super) fn renumbered(&self, graph: &Graph, places: &[Option<usize>]) -> Self {
        let centre = |mark: &TetrahedralMark| {
            let neighbours = mark.neighbours.map(|atom| places[atom?]);
            let known = neighbours.iter().flatten().count() >= 3;
            Some(TetrahedralMark { atom: places[mark.atom].filter(|_| known)?, neighbours, ..*mark })
        };
        let double_bond = |mark: &DoubleBondMark| {
            let [a, b] = mark.atoms;
            let (x, x_moved) = kept_beside(graph, places, a, b, mark.neighbours[0])?;
            let (y, y_moved) = kept_beside(graph, places, b, a, mark.neighbours[1])?;
            let together = mark.together ^ x_moved ^ y_moved;
            Some(DoubleBondMark { atoms: [places[a]?, places[b]?], neighbours: [x, y], together })
        };
        let (mut polyhedra, mut unchecked) = (Vec::new(), self.unchecked.clone());
        for mark in &self.polyhedra {
            match mark.renumbered(|atom| places[atom]) {
                Some(mark) => polyhedra.push(mark),
                None => unchecked.push(mark.atom),
            }
        }
        StereoMarks {
            centres: self.centres.iter().filter_map(centre).collect(),
            double_bonds: self.double_bonds.iter().filter_map(double_bond).collect(),
            polyhedra,
            unchecked: unchecked.into_iter().filter_map(|atom| places[atom]).collect(),
        }
    }
}

impl TetrahedralMark {
    /// Whether coordinates agree; `None` if the bonds are planar. `place` gives the position of an atom in Å.
    pub fn agrees(&self, place: impl Fn(usize) -> [f64; 3]) -> Option<bool> {
        let neighbours = self.neighbours.map(|atom| atom.map(&place));
        Some(is_counterclockwise(place(self.atom), neighbours)? == self.counterclockwise)
    }

    /// The atom and its neighbours.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.neighbours.into_iter().flatten().chain([self.atom])
    }

    /// The index of the mark that the image of this atom has in another molecule, and whether it has the opposite handedness;
    /// `None` if the image has no mark.
    pub(super) fn image_in(
        &self,
        others: &[TetrahedralMark],
        image: &dyn Fn(usize) -> usize,
    ) -> Option<(usize, bool)> {
        let at = others.iter().position(|other| other.atom == image(self.atom))?;
        // The implied neighbour sorts last.
        let ranks = |neighbours: [Option<usize>; 4]| neighbours.map(|atom| atom.unwrap_or(usize::MAX));
        let (moved, there) = (self.neighbours.map(|atom| atom.map(image)), others[at].neighbours);
        let is_moved = is_odd(ranks(moved)) ^ is_odd(ranks(there));
        Some((at, self.counterclockwise ^ others[at].counterclockwise ^ is_moved))
    }
}

impl DoubleBondMark {
    /// Whether coordinates agree; `None` if a neighbour lies on the line of the bond. `place` gives the position of an atom in Å.
    pub fn agrees(&self, place: impl Fn(usize) -> [f64; 3]) -> Option<bool> {
        let [a, b] = self.atoms.map(&place);
        let [x, y] = self.neighbours.map(&place);
        Some(are_together([x, a, b, y])? == self.together)
    }

    /// The two atoms and their neighbours.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.atoms.into_iter().chain(self.neighbours)
    }

    /// The index of the mark that the image of this bond has in another molecule, and whether it has the opposite stereo; `None`
    /// if the image has no mark.
    pub(super) fn image_in(
        &self,
        others: &[DoubleBondMark],
        image: &dyn Fn(usize) -> usize,
    ) -> Option<(usize, bool)> {
        let [a, b] = self.atoms.map(image);
        let [x, y] = self.neighbours.map(image);
        let at = others.iter().position(|other| other.atoms == [a, b] || other.atoms == [b, a])?;
        let other = &others[at];
        let [own_x, own_y] =
            if other.atoms == [a, b] { other.neighbours } else { [other.neighbours[1], other.neighbours[0]] };
        Some((at, self.together ^ other.together ^ (own_x != x) ^ (own_y != y)))
    }
}

/// Whether an odd number of swaps of neighbours sorts them by their ranks.
fn is_odd<R: Ord>(ranks: [R; 4]) -> bool {
    let pairs = (0..4).flat_map(|i| (i + 1..4).map(move |j| (i, j)));
    pairs.filter(|(i, j)| ranks[*i] > ranks[*j]).count() % 2 == 1
}

/// Whether the last three of four neighbours appear counterclockwise from the first. Positions are in Å; one neighbour may be
/// missing (an implied hydrogen or a lone pair). `None` if the bonds are planar.
pub fn is_counterclockwise(centre: [f64; 3], neighbours: [Option<[f64; 3]>; 4]) -> Option<bool> {
    let bonds = neighbours.map(|place| place.map(|place| minus(place, centre)));
    let volume = |left_out: usize| -> Option<f64> {
        let mut rest = (0..4).filter(|at| *at != left_out).map(|at| bonds[at]);
        let volume = triple(rest.next()??, rest.next()??, rest.next()??);
        // An even number of neighbours before the missing one keeps the sense.
        Some(if left_out.is_multiple_of(2) { -volume } else { volume })
    };
    let left_out = bonds.iter().position(Option::is_none);
    // Three planar bonds decide nothing, so another three are tried.
    let candidates = left_out.map_or([3, 2, 1, 0], |at| [at; 4]);
    let volume =
        candidates.into_iter().filter_map(volume).find(|volume| volume.abs() > FLAT_CUBIC_ANGSTROM)?;
    Some(volume > 0.0)
}

/// Whether the first and the last of four atoms in a chain lie on the same side of the middle bond, that is, their torsion is below
/// 90°. Positions are in Å. `None` if three of the atoms lie on a line.
pub fn are_together([x, a, b, y]: [[f64; 3]; 4]) -> Option<bool> {
    let bond = minus(b, a);
    let (left, right) = (cross(minus(x, a), bond), cross(minus(y, b), bond));
    let lengths = (dot(left, left) * dot(right, right)).sqrt();
    // In Å⁴. Only atoms on the line of the bond give a value so close to zero.
    (lengths > 1e-6).then(|| dot(left, right) > 0.0)
}

/// The tetrahedral mark of an atom, if it has one.
fn centre(graph: &Graph, atom: usize) -> Option<TetrahedralMark> {
    let mut counterclockwise = match graph.atoms[atom].chirality? {
        Chirality::Counterclockwise => true,
        Chirality::Clockwise => false,
        _ => return None,
    };
    let mut bonds = graph.written[atom].clone();
    // Far from a tetrahedron three bonds may have another sense than another three. RDKit looks at its first three, and it adds ring
    // bonds behind all others, by their numbers.
    if let Ok(four) = <[usize; 4]>::try_from(&bonds[..]) {
        let late = |bond: &usize| graph.ring_bonds.iter().position(|ring| ring == bond);
        counterclockwise ^= is_odd(four.map(|bond| late(&bond)));
        bonds.sort_by_key(late);
    }
    let mut order: Vec<Option<usize>> =
        bonds.iter().map(|bond| Some(graph.bonds[*bond].other(atom))).collect();
    if order.len() == 3 {
        order.insert(usize::from(!is_implied_first(graph, atom)), None);
    }
    let neighbours = order.try_into().ok()?;
    Some(TetrahedralMark { atom, neighbours, counterclockwise })
}

/// Whether the implied neighbour of an atom with three bonds comes before them; otherwise it comes behind the first. A hydrogen
/// stands where it is written. OpenSMILES puts a lone pair there too, but programs that write SMILES follow RDKit, which puts it
/// behind the first neighbour even of a first atom, and before it if a saturated atom has one ring number
/// (`chiralAtomNeedsTagInversion` in `Code/GraphMol/Canon.cpp`).
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

/// The mark of a double bond, if both sides have a direction.
fn double_bond(graph: &Graph, atoms: [usize; 2]) -> Option<DoubleBondMark> {
    let [a, b] = atoms;
    let ((x, x_above), (y, y_above)) = (directed(graph, a)?, directed(graph, b)?);
    Some(DoubleBondMark { atoms, neighbours: [x, y], together: x_above == y_above })
}

/// The first neighbour of an atom whose bond has a direction, and whether it lies above.
fn directed(graph: &Graph, atom: usize) -> Option<(usize, bool)> {
    graph.written[atom].iter().find_map(|bond| {
        let bond = &graph.bonds[*bond];
        let direction = if bond.atoms[0] == atom { bond.direction? } else { bond.direction?.reversed() };
        Some((bond.other(atom), direction == Direction::Up))
    })
}

/// The new index of a neighbour of `atom`, other than `across`, and whether it replaces the removed `neighbour`.
fn kept_beside(
    graph: &Graph,
    places: &[Option<usize>],
    atom: usize,
    across: usize,
    neighbour: usize,
) -> Option<(usize, bool)> {
    if let Some(place) = places[neighbour] {
        return Some((place, false));
    }
    let others = graph.written[atom].iter().map(|bond| graph.bonds[*bond].other(atom));
    let other =
        others.filter(|other| *other != across && *other != neighbour).find_map(|other| places[other])?;
    Some((other, true))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn sides_of_double_bonds() {
        let together = |smiles: &str| marks(smiles).double_bonds.first().map(|mark| mark.together);
        for (smiles, expected) in [
            ("F/C=C/F", Some(false)),
            ("F\\C=C/F", Some(true)),
            ("C(\\F)=C/F", Some(false)),
            ("F/C(Cl)=C(/F)Br", Some(false)),
            ("FC=C/F", None),
            ("C/1=C/CCCCCC1", Some(true)),
            ("C1=C/CCCCCC\\1", Some(true)),
            ("C1=C/CCCCCC/1", Some(false)),
            ("CC=CC", None),
        ] {
            assert_eq!(together(smiles), expected, "{smiles}");
        }
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

    #[test]
    fn sides_by_torsion() {
        let chain = |y| are_together([[0.0, 1.0, 0.0], [0.0; 3], [1.3, 0.0, 0.0], [1.3, y, 0.1]]);
        assert_eq!((chain(1.0), chain(-1.0)), (Some(true), Some(false)));
        assert_eq!(are_together([[-1.0, 0.0, 0.0], [0.0; 3], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]), None);
    }
}
