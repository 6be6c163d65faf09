//! What the measures of ensembles have to know of a molecule: its size and its torsions.

use super::strata::MoleculeSize;
use drift_core::chem::{Isotopes, Molecule, SmilesError};
use drift_core::text::skeleton::smiles;

/// The size and the torsions of a molecule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flexibility {
    /// Its heavy atoms and rotatable bonds.
    pub size: MoleculeSize,
    /// Its torsions, [`Molecule::torsions`]. Atoms are those of the skeleton.
    pub torsions: Vec<[usize; 4]>,
}

impl Flexibility {
    /// Returns the molecule of a skeleton, [`drift_core::text::skeleton`], without isotope labels.
    ///
    /// # Errors
    /// If its text is not a SMILES, or RDKit would refuse it.
    pub fn from_skeleton(skeleton: &str) -> Result<Self, SmilesError> {
        let molecule = Molecule::of_smiles_with(&smiles(skeleton), Isotopes::Ignore)?;
        Ok(Flexibility { size: MoleculeSize::from_molecule(&molecule), torsions: molecule.torsions() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hydrogens_and_labels_do_not_count() {
        let of = |skeleton: &str| Flexibility::from_skeleton(skeleton).unwrap();
        let butane = of("[CH3]<>[13CH2]<>[C]<>[C]<>");
        assert_eq!(butane.size, MoleculeSize { heavy_atoms: 4, rotatable_bonds: 1 });
        assert_eq!(butane.torsions, [[0, 1, 2, 3]]);
        // A hydrogen that is written has a position, too.
        let labelled = of("[2H]<>[C]<>[C]<>[C]<>[C]<>");
        assert_eq!((labelled.size, &*labelled.torsions), (butane.size, &[[1, 2, 3, 4]][..]));
        assert!(Flexibility::from_skeleton("[C]<>(").is_err());
    }
}
