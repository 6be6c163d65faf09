//! A SMILES that is parsed and sanitised once for all uses.

use super::graph::{Graph, Order, SmilesProblem};
use super::limit::AtomLimit;
use super::molecule::Molecule;
use super::stereo::StereoMarks;
use super::stereogenic::perceived_marks;

/// A SMILES with its molecule.
#[derive(Debug)]
pub struct SmilesReading<'t> {
    pub(super) text: &'t str,
    /// The graph as written.
    pub(super) written: Graph,
    /// By atom of the text, whether it is a hydrogen that a count can replace.
    pub(super) removed: Vec<bool>,
    /// The molecule without the removed hydrogens.
    pub(super) molecule: Molecule,
    /// By bond of the molecule, whether it is aromatic.
    pub(super) aromatic: Vec<bool>,
    /// Its stereo marks, by atoms as written. Those that RDKit drops are listed as such.
    pub(super) marks: StereoMarks,
}

impl<'t> SmilesReading<'t> {
    /// Reads a SMILES with at most `limit` heavy atoms.
    ///
    /// # Errors
    /// If RDKit would refuse it, or it is too large.
    pub fn new(text: &'t str, limit: AtomLimit) -> Result<Self, SmilesProblem> {
        limit.check(text)?;
        let written = Graph::parse(text)?;
        let removed = written.needless_hydrogens();
        let molecule = sanitised(&written, &removed)?;
        let aromatic = molecule.aromatic_bonds();
        let marks = perceived_marks(&written, &removed, &molecule, &aromatic);
        Ok(SmilesReading { text, written, removed, molecule, aromatic, marks })
    }

    /// Returns its stereo marks, by atoms as written. Those that RDKit drops are listed as such.
    pub fn marks(&self) -> &StereoMarks {
        &self.marks
    }

    /// Returns whether an enriched text can express the SMILES exactly: it has no removable hydrogens, no map numbers, no dative arrows,
    /// no bonds of order zero, and no radicals that a text cannot express.
    pub fn is_as_in_texts(&self) -> bool {
        !self.removed.contains(&true)
            && self.written.atoms.iter().all(|atom| atom.map.is_none())
            && self.written.bonds.iter().all(|bond| !matches!(bond.order, Order::Dative | Order::Any))
            && !self.written.has_unwritable_radicals()
    }
}

/// Returns the molecule of a graph without some of its hydrogens. Without bond orders nothing is known about charges, so there is nothing
/// to sanitise.
pub(super) fn sanitised(graph: &Graph, removed: &[bool]) -> Result<Molecule, SmilesProblem> {
    let bare = match removed.contains(&true) {
        true => graph.without_hydrogens(),
        false => Graph { atoms: graph.atoms.clone(), bonds: graph.bonds.clone(), ..Graph::default() },
    };
    if graph.pairs_only { Ok(Molecule::unsanitised(bare)) } else { bare.try_into() }
}
