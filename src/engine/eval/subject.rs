//! What texts are generated for and judged by.

use std::sync::Arc;

use rayon::prelude::*;

use super::molecules::{PromptMolecule, PromptPool};
use drift_core::encoding::{Encoding, Fixed};
use drift_core::error::{Error, Result};
use drift_core::text::skeleton::smiles;
use drift_data::audit::chemistry::Chemistry;
use drift_data::audit::geometry::Topology;
use drift_data::audit::{Reference, in_angstrom};

/// A molecule with what its texts are judged by.
pub(super) struct Subject {
    pub molecule: PromptMolecule,
    /// The first subject whose texts are measured together with its own: itself, unless it is pooled.
    pub group: usize,
    /// None without reference conformers.
    pub reference: Option<Reference>,
    /// What the texts of a pool are measured by; none of a molecule that stands for itself.
    pub pool: Option<Arc<SubjectPool>>,
    /// None of a molecule that RDKit would refuse.
    pub chemistry: Option<Chemistry>,
}

/// What the texts of a pool are measured by.
pub(super) struct SubjectPool {
    pub molecule: Arc<PromptPool>,
    /// None without reference conformers.
    pub reference: Option<Reference>,
}

impl Subject {
    /// Those of all molecules, in their order.
    ///
    /// # Errors
    /// If a molecule that has conformers has no bonds that can be read.
    pub(super) fn all(molecules: &[PromptMolecule]) -> Result<Vec<Self>> {
        let mut subjects: Vec<Subject> = molecules.par_iter().map(Subject::new).collect::<Result<_>>()?;
        let mut group = 0;
        for (at, molecule) in molecules.iter().enumerate() {
            // Isomers of a pool stand side by side.
            if at == 0 || !molecule.is_pooled_with(&molecules[at - 1]) {
                group = at;
                subjects[at].pool = SubjectPool::of(molecule)?.map(Arc::new);
            }
            subjects[at].group = group;
            subjects[at].pool = subjects[group].pool.clone();
        }
        Ok(subjects)
    }

    fn new(molecule: &PromptMolecule) -> Result<Self> {
        let chemistry = Chemistry::from_smiles(&smiles(&molecule.skeleton)).ok();
        let PromptMolecule { smiles, skeleton, conformers, encoding, .. } = molecule;
        let reference = reference((smiles, skeleton), conformers, *encoding)?;
        Ok(Subject { molecule: molecule.clone(), group: 0, reference, pool: None, chemistry })
    }

    /// What its texts are measured by, those of its pool if it is pooled: the SMILES, the skeleton and the references.
    pub(super) fn measured_as(&self) -> (&str, &str, Option<&Reference>) {
        match &self.pool {
            Some(pool) => (&pool.molecule.smiles, &pool.molecule.skeleton, pool.reference.as_ref()),
            None => (&self.molecule.smiles, &self.molecule.skeleton, self.reference.as_ref()),
        }
    }
}

impl SubjectPool {
    fn of(molecule: &PromptMolecule) -> Result<Option<Self>> {
        let Some(pool) = &molecule.pool else { return Ok(None) };
        let reference = reference((&pool.smiles, &pool.skeleton), &pool.conformers, pool.encoding)?;
        Ok(Some(SubjectPool { molecule: pool.clone(), reference }))
    }
}

/// Conformers as references; none without any.
fn reference(
    (smiles, skeleton): (&str, &str),
    conformers: &[Vec<[Fixed; 3]>],
    encoding: Encoding,
) -> Result<Option<Reference>> {
    if conformers.is_empty() {
        return Ok(None);
    }
    let topology = Topology::new(skeleton).map_err(|e| Error::input(smiles, e, "leave this molecule out"))?;
    let conformers = conformers.iter().map(|conformer| in_angstrom(conformer, encoding)).collect();
    Ok(Some(Reference { topology, conformers }))
}
