//! A text that shows what chemistry a run lacks.

use serde::{Deserialize, Serialize};

use drift_data::audit::chemistry::ChemistryFinding;
use drift_data::audit::geometry::Conformation;

/// A text that passes and breaks many rules, with what a picture of it needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorstText {
    /// The prompt's SMILES.
    pub smiles: String,
    /// Which of the molecule's texts.
    pub generation: usize,
    /// The rules that it breaks.
    pub findings: Vec<ChemistryFinding>,
    /// The element of each atom.
    pub elements: Vec<String>,
    /// Bonds of the SMILES, by atoms from 0.
    pub bonds: Vec<[usize; 2]>,
    /// Where the atoms lie, in Å; laid onto the reference, if there is one.
    pub points: Conformation,
    /// The reference conformer that is nearest with each atom onto itself, in Å.
    pub reference: Option<Conformation>,
    /// How far that is, in Å: the RMSD with each atom onto itself.
    pub rmsd_angstrom: Option<f64>,
}
