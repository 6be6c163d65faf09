//! Stereo marks of a SMILES, and the stereo of coordinates.
//!
//! In a text `@` counts neighbours in the order of the text (OpenSMILES 1.0, section 3.9). The stereo of coordinates follows RDKit's
//! `assignChiralTypesFrom3D` and `setDoubleBondNeighborDirections` (`Code/GraphMol/Chirality.cpp`).

mod double_bond;
mod tetrahedral;

pub(super) use double_bond::SMALLEST_RING;
pub use double_bond::{DoubleBondMark, are_together};
pub use tetrahedral::TetrahedralMark;

use super::graph::{Bond, Chirality, Graph, Order};
use super::polyhedra::PolyhedralMark;

/// The image of a mark in another molecule.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkImage {
    /// Its index among the marks of its kind there.
    pub(super) index: usize,
    /// Whether it has the opposite sense.
    pub(super) inverted: bool,
}

/// Returns whether all atoms are placed when `last` is, and not before; atoms are placed by ascending number.
pub(super) fn is_last(last: usize, atoms: impl Iterator<Item = usize>) -> bool {
    atoms.max() == Some(last)
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
    /// Marked atoms that cannot be compared with coordinates: polyhedra with missing neighbours.
    pub unchecked: Vec<usize>,
    /// Marked atoms without meaning: those with two hydrogens, for example, and those that RDKit drops.
    pub dropped: Vec<usize>,
    /// Double bonds whose marks RDKit drops.
    pub dropped_bonds: Vec<[usize; 2]>,
}

impl StereoMarks {
    /// Returns the marks of a graph as written, whether or not RDKit keeps them. A mark on one side of a double bond is none.
    pub fn from_graph(graph: &Graph) -> Self {
        if graph.written.len() != graph.atoms.len() {
            return StereoMarks::default();
        }
        let is_double = |bond: &&Bond| bond.order == Order::Double;
        let double_bonds = graph.bonds.iter().filter(is_double);
        let double_bonds = double_bonds.filter_map(|bond| DoubleBondMark::from_graph(graph, bond.atoms));
        let mut marks = StereoMarks { double_bonds: double_bonds.collect(), ..StereoMarks::default() };
        for atom in 0..graph.atoms.len() {
            let Some(chirality) = graph.atoms[atom].chirality else { continue };
            if matches!(chirality, Chirality::Counterclockwise | Chirality::Clockwise) {
                match TetrahedralMark::from_graph(graph, atom) {
                    Some(mark) => marks.centres.push(mark),
                    None => marks.dropped.push(atom),
                }
                continue;
            }
            let neighbours = graph.written[atom].iter().map(|bond| graph.bonds[*bond].other(atom));
            match PolyhedralMark::new(atom, chirality, neighbours.collect()) {
                Some(mark) => marks.polyhedra.push(mark),
                None => marks.unchecked.push(atom),
            }
        }
        marks
    }

    /// Lists as dropped what is not kept.
    pub(super) fn only(
        mut self,
        is_kept_atom: &dyn Fn(usize) -> bool,
        is_kept_bond: &dyn Fn([usize; 2]) -> bool,
    ) -> Self {
        let centres = self.centres.iter().map(|mark| mark.atom);
        let polyhedra = self.polyhedra.iter().map(|mark| mark.atom);
        let marked = centres.chain(polyhedra).chain(self.unchecked.iter().copied());
        self.dropped.extend(marked.filter(|atom| !is_kept_atom(*atom)));
        let bonds = self.double_bonds.iter().map(|mark| mark.atoms);
        self.dropped_bonds.extend(bonds.filter(|atoms| !is_kept_bond(*atoms)));
        self.centres.retain(|mark| is_kept_atom(mark.atom));
        self.polyhedra.retain(|mark| is_kept_atom(mark.atom));
        self.unchecked.retain(|atom| is_kept_atom(*atom));
        self.double_bonds.retain(|mark| is_kept_bond(mark.atoms));
        self
    }

    /// Returns whether some stereocentre cannot be compared with coordinates that lack implied hydrogens.
    pub(super) fn need_hydrogens(&self) -> bool {
        self.centres.iter().any(TetrahedralMark::needs_hydrogen)
    }

    /// Returns the marks that can be compared with coordinates in which the atoms of `is_placed` have places; the others are unchecked.
    pub(super) fn where_placed(&self, is_placed: &dyn Fn(usize) -> bool) -> Self {
        let has_places = |mark: &TetrahedralMark| !mark.needs_hydrogen() && mark.all().all(is_placed);
        let mut marks = self.clone();
        let (placed, other): (Vec<_>, Vec<_>) = marks.centres.into_iter().partition(has_places);
        marks.centres = placed;
        marks.unchecked.extend(other.iter().map(|mark| mark.atom));
        marks
    }

    /// Returns the number of marks that are not compared with coordinates.
    pub(super) fn unchecked_count(&self) -> usize {
        self.unchecked.len() + self.dropped.len() + self.dropped_bonds.len()
    }

    /// Returns the numbers of marks that say something: stereocentres, double bonds, polyhedra, unchecked atoms.
    pub(super) fn counts(&self) -> [usize; 4] {
        [self.centres.len(), self.double_bonds.len(), self.polyhedra.len(), self.unchecked.len()]
    }

    /// Returns whether there is no mark to compare.
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

    /// Returns whether coordinates agree with each mark that becomes complete when the atom `last` is placed; atoms are placed by
    /// ascending number.
    pub(super) fn agree_at(&self, last: usize, place: &dyn Fn(usize) -> [f64; 3]) -> bool {
        self.centres.iter().all(|mark| !is_last(last, mark.all()) || mark.agrees(place) == Some(true))
            && self
                .polyhedra
                .iter()
                .all(|mark| !is_last(last, mark.all()) || mark.agrees(place) == Some(true))
            && self
                .double_bonds
                .iter()
                .all(|mark| !is_last(last, mark.all()) || mark.agrees(place) == Some(true))
    }

    /// Returns the remaining marks after some atoms are removed; `places` has the new index of each kept atom. Marks that need a removed
    /// atom are listed as unchecked or dropped.
    pub(super) fn renumbered(&self, places: &[Option<usize>]) -> Self {
        let mut marks = StereoMarks::default();
        let (mut unchecked, mut dropped) = (self.unchecked.clone(), self.dropped.clone());
        for mark in &self.centres {
            match mark.renumbered(places) {
                Some(mark) => marks.centres.push(mark),
                None => dropped.push(mark.atom),
            }
        }
        for mark in &self.polyhedra {
            match mark.renumbered(|atom| places[atom]) {
                Some(mark) => marks.polyhedra.push(mark),
                None => unchecked.push(mark.atom),
            }
        }
        let mut dropped_bonds = self.dropped_bonds.clone();
        for mark in &self.double_bonds {
            match mark.renumbered(places) {
                Some(mark) => marks.double_bonds.push(mark),
                None => dropped_bonds.push(mark.atoms),
            }
        }
        marks.unchecked = unchecked.into_iter().filter_map(|atom| places[atom]).collect();
        marks.dropped = dropped.into_iter().filter_map(|atom| places[atom]).collect();
        marks.dropped_bonds =
            dropped_bonds.into_iter().filter_map(|[a, b]| Some([places[a]?, places[b]?])).collect();
        marks
    }
}
