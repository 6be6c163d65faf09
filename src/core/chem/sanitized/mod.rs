//! Properties that RDKit perceives in a SMILES beyond atoms and bonds: aromaticity, small rings, conjugation, hybridisation.

mod hybridisation;

pub use hybridisation::Hybridisation;
pub(super) use hybridisation::hybridisation;

use super::graph::{Graph, SmilesProblem};
use super::limit::AtomLimit;
use super::molecule::{Molecule, SmilesError};
use super::rings::Rings;

/// A molecule with its aromatic bonds and small rings. Its atoms are those of the SMILES, hydrogens written as atoms included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SanitizedMolecule {
    /// Atoms, bonds and hydrogens. Aromatic rings are in a Kekulé structure.
    pub molecule: Molecule,
    /// By bond, whether it is aromatic.
    pub aromatic: Vec<bool>,
    /// RDKit's symmetrised smallest set of smallest rings, smallest first: the rings that are no sum of smaller ones. Each lists its
    /// atoms in order.
    pub rings: Vec<Vec<usize>>,
    /// By atom, its hybridisation.
    pub hybridisation: Vec<Hybridisation>,
    /// By bond, whether it is conjugated.
    pub conjugated: Vec<bool>,
}

impl SanitizedMolecule {
    /// Reads a SMILES within the default size limit ([`AtomLimit::default`]).
    ///
    /// # Errors
    /// If RDKit would refuse `smiles`, it has more heavy atoms, or it has a `*`.
    pub fn new(smiles: &str) -> Result<Self, SmilesError> {
        let fail = |problem: SmilesProblem| SmilesError::new(smiles, &problem);
        let graph = AtomLimit::default().check(smiles).and_then(|()| Graph::parse(smiles)).map_err(fail)?;
        let molecule = Molecule::try_from(graph).map_err(fail)?;
        if molecule.atoms.iter().any(|atom| atom.element == 0) {
            return Err(fail(SmilesProblem::Unperceived));
        }
        let Rings { aromatic, rings } = molecule.rings();
        let (hybridisation, conjugated) = hybridisation(&molecule, &aromatic);
        Ok(SanitizedMolecule { molecule, aromatic, rings, hybridisation, conjugated })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_and_aromatic_bonds() {
        let indole = SanitizedMolecule::new("C1=CC=C2NC=CC2=C1C").unwrap();
        let mut sizes: Vec<usize> = indole.rings.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [5, 6]);
        assert_eq!(indole.aromatic.iter().filter(|aromatic| **aromatic).count(), 10);
        let cubane = SanitizedMolecule::new("C12C3C4C1C5C4C3C25").unwrap();
        assert_eq!(cubane.rings.len(), 6);
        assert!(SanitizedMolecule::new("C(").is_err() && SanitizedMolecule::new(&"C".repeat(1_001)).is_err());
    }

    #[test]
    fn hydrogens_that_are_atoms_stay_in_place() {
        let water = SanitizedMolecule::new("[2H]O[H]").unwrap();
        assert_eq!(water.molecule.atoms.len(), 3);
        assert_eq!(water.molecule.atoms[1].element, 8);
        assert!(water.rings.is_empty());
    }
}
