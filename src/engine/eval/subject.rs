//! The molecules of an evaluation with the data that their texts are judged by.

use std::sync::Arc;

use rayon::prelude::*;

use drift_core::encoding::{Encoding, Fixed};
use drift_core::error::{Error, Result};
use drift_core::text::skeleton::smiles;
use drift_data::audit::chemistry::Chemistry;
use drift_data::audit::geometry::Topology;
use drift_data::audit::{Reference, in_angstrom};
use drift_data::prompts::{PromptMolecule, PromptPool};

/// A molecule with the data that its texts are judged by.
pub(super) struct Subject {
    pub molecule: PromptMolecule,
    /// The index of the first subject of its pool, whose texts are measured together with its own; its own index if it is not
    /// pooled.
    pub group: usize,
    /// The reference conformers; `None` if there are none.
    pub reference: Option<Reference>,
    /// The data that the texts of the pool are measured by; `None` if the molecule is not pooled.
    pub pool: Option<Arc<SubjectPool>>,
    /// The data of chemistry checks; `None` for a molecule that RDKit would refuse.
    pub chemistry: Option<Chemistry>,
}

/// The data that the texts of a pool are measured by.
pub(super) struct SubjectPool {
    pub molecule: Arc<PromptPool>,
    /// The reference conformers; `None` if there are none.
    pub reference: Option<Reference>,
}

impl Subject {
    /// The subjects of all molecules, in their order.
    ///
    /// # Errors
    /// If a molecule with conformers has no bonds that can be read.
    pub(super) fn all(molecules: &[PromptMolecule]) -> Result<Vec<Self>> {
        let mut subjects: Vec<Subject> = molecules.par_iter().map(Subject::new).collect::<Result<_>>()?;
        let mut group = 0;
        for (at, molecule) in molecules.iter().enumerate() {
            // The isomers of a pool are adjacent.
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

    /// The data that its texts are measured by, or those of its pool: the SMILES, the skeleton and the references.
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

/// Conformers as references; `None` if there are none.
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
