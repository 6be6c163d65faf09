//! Stereo marks of a SMILES, and the stereo of coordinates.
//!
//! In a text `@` counts neighbours in the order of the text (OpenSMILES 1.0, section 3.9). The stereo of coordinates follows RDKit's
//! `assignChiralTypesFrom3D` and `setDoubleBondNeighborDirections` (`Code/GraphMol/Chirality.cpp`).

mod double_bond;
mod tetrahedral;

pub use double_bond::{DoubleBondMark, are_together};
pub use tetrahedral::{TetrahedralMark, is_counterclockwise};

use super::graph::{Bond, Chirality, Graph, Order};
use super::polyhedra::PolyhedralMark;

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
        let centres =
            (0..graph.atoms.len()).filter_map(|atom| TetrahedralMark::from_graph(graph, atom)).collect();
        let is_double = |bond: &&Bond| bond.order == Order::Double;
        let double_bonds = graph.bonds.iter().filter(is_double);
        let double_bonds =
            double_bonds.filter_map(|bond| DoubleBondMark::from_graph(graph, bond.atoms)).collect();
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

    /// The remaining marks after some atoms are removed; `places` has the new index of each kept atom.
    pub(super) fn renumbered(&self, places: &[Option<usize>]) -> Self {
        let (mut polyhedra, mut unchecked) = (Vec::new(), self.unchecked.clone());
        for mark in &self.polyhedra {
            match mark.renumbered(|atom| places[atom]) {
                Some(mark) => polyhedra.push(mark),
                None => unchecked.push(mark.atom),
            }
        }
        StereoMarks {
            centres: self.centres.iter().filter_map(|mark| mark.renumbered(places)).collect(),
            double_bonds: self.double_bonds.iter().filter_map(|mark| mark.renumbered(places)).collect(),
            polyhedra,
            unchecked: unchecked.into_iter().filter_map(|atom| places[atom]).collect(),
        }
    }
}
