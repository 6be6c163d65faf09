//! The cached data for judging the texts of one molecule.

use std::sync::{Arc, OnceLock};

use super::super::chemistry::Chemistry;
use super::super::ensemble::Flexibility;
use super::super::geometry::{Conformation, Topology};
use drift_core::chem::Isotopes;
use drift_core::text::skeleton;
use drift_core::{Error, Result};

/// The data for judging the texts of a molecule.
#[derive(Debug)]
pub(super) struct JudgedMolecule {
    pub smiles: Box<str>,
    pub skeleton: Box<str>,
    /// The references, `[conformers][atoms]` in Å.
    pub conformers: Arc<Vec<Conformation>>,
    /// `None` inside for a molecule that is too large.
    chemistry: OnceLock<Option<Chemistry>>,
    topology: OnceLock<Option<Topology>>,
    flexibility: OnceLock<Option<Flexibility>>,
}

impl JudgedMolecule {
    pub(super) fn new(smiles: &str, skeleton: Box<str>, conformers: Arc<Vec<Conformation>>) -> Self {
        JudgedMolecule {
            smiles: smiles.into(),
            skeleton,
            conformers,
            chemistry: OnceLock::new(),
            topology: OnceLock::new(),
            flexibility: OnceLock::new(),
        }
    }

    pub(super) fn chemistry(&self) -> Option<&Chemistry> {
        self.chemistry.get_or_init(|| Chemistry::from_smiles(&skeleton::smiles(&self.skeleton)).ok()).as_ref()
    }

    /// Returns the size and the torsions.
    pub(super) fn flexibility(&self) -> Option<&Flexibility> {
        self.flexibility.get_or_init(|| Flexibility::from_skeleton(&self.skeleton).ok()).as_ref()
    }

    /// Returns the topology with the isotope labels that count, which must be the same in all calls.
    pub(super) fn topology(&self, isotopes: Isotopes) -> Result<&Topology> {
        let topology = self.topology.get_or_init(|| Topology::with_isotopes(&self.skeleton, isotopes).ok());
        topology.as_ref().ok_or_else(|| Error::input(&self.smiles, "is no molecule", "leave it out"))
    }
}
