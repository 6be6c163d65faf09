//! The reference conformers of prompts, as texts are compared with them.

use super::molecule::PromptMolecule;
use super::molecules::Molecules;
use crate::audit::geometry::Conformation;
use crate::audit::{PromptReferences, in_angstrom};
use drift_core::encoding::Fixed;
use drift_core::{Encoding, Result};

impl Molecules {
    /// Returns the reference conformers of all molecules and of their pools, in Å.
    ///
    /// # Errors
    /// If a molecule with conformers has no bonds that can be read.
    pub fn prompt_references(&self) -> Result<PromptReferences> {
        let mut references = PromptReferences::default();
        for (at, molecule) in self.molecules.iter().enumerate() {
            let PromptMolecule { skeleton, encoding, conformers, pool, .. } = molecule;
            references.add(skeleton, angstrom(conformers, *encoding))?;
            // The isomers of a pool are adjacent.
            let is_first = at == 0 || !molecule.is_pooled_with(&self.molecules[at - 1]);
            if let Some(pool) = pool.as_ref().filter(|_| is_first) {
                references.add_pool(&pool.skeleton, angstrom(&pool.conformers, pool.encoding))?;
            }
        }
        Ok(references)
    }
}

fn angstrom(conformers: &[Vec<[Fixed; 3]>], encoding: Encoding) -> Vec<Conformation> {
    conformers.iter().map(|conformer| in_angstrom(conformer, encoding)).collect()
}
