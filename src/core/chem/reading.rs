//! A SMILES that is parsed and sanitised once for all uses.

use std::collections::BTreeSet;

use super::graph::{Graph, Order, SmilesProblem};
use super::handedness::Handedness;
use super::labelled::LabelledGraph;
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

    /// Returns the ways in which its stereocentres may be inverted together without making another molecule, each as a mark for each
    /// centre of [`SmilesReading::marks`]. The two centres of `O[C@H]1CC[C@@H](C)CC1` may be inverted together, because only their
    /// relation has a meaning. One way inverts none.
    pub fn inversions(&self) -> BTreeSet<Vec<bool>> {
        let centres = self.marks.centres.len();
        if centres > 1
            && let Ok((graph, _)) = LabelledGraph::of_reading(self)
            && graph.marks == self.marks
        {
            return Handedness::from_graph(&graph).inversions(&graph);
        }
        [vec![false; centres]].into()
    }

    /// Returns whether an enriched text can express the SMILES exactly: it has no removable hydrogens, no map numbers, no dative arrows,
    /// no bonds of order zero, and no radicals that a text cannot express.
    pub fn is_as_in_texts(&self) -> bool {
        !self.removed.contains(&true)
            && self.written.atoms.iter().all(|atom| atom.map == 0)
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

#[cfg(test)]
mod tests {
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
