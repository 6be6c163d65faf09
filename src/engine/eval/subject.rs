//! What texts are generated for and judged by.

use rayon::prelude::*;

use super::molecules::PromptMolecule;
use drift_core::error::{Error, Result};
use drift_core::text::skeleton::smiles;
use drift_data::audit::chemistry::Chemistry;
use drift_data::audit::geometry::Topology;
use drift_data::audit::{Reference, in_angstrom};

/// A molecule with what its texts are judged by.
pub(super) struct Subject {
    pub molecule: PromptMolecule,
    /// None without reference conformers.
    pub reference: Option<Reference>,
    /// None of a molecule that RDKit would refuse.
    pub chemistry: Option<Chemistry>,
}

impl Subject {
    /// Those of all molecules, in their order.
    ///
    /// # Errors
    /// If a molecule that has conformers has no bonds that can be read.
    pub(super) fn all(molecules: &[PromptMolecule]) -> Result<Vec<Self>> {
        molecules.par_iter().map(Subject::new).collect()
    }

    fn new(molecule: &PromptMolecule) -> Result<Self> {
        let chemistry = Chemistry::from_smiles(&smiles(&molecule.skeleton)).ok();
        let mut subject = Subject { molecule: molecule.clone(), reference: None, chemistry };
        if !molecule.conformers.is_empty() {
            let topology = Topology::new(&molecule.skeleton)
                .map_err(|e| Error::input(&molecule.smiles, e, "leave this molecule out"))?;
            let conformers = molecule
                .conformers
                .iter()
                .map(|conformer| in_angstrom(conformer, molecule.encoding))
                .collect();
            subject.reference = Some(Reference { topology, conformers });
        }
        Ok(subject)
    }
}
