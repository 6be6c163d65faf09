//! A text that shows which chemistry rules a run violates.

use serde::{Deserialize, Serialize};

use drift_data::audit::chemistry::ChemistryFinding;
use drift_data::audit::geometry::Conformation;

/// A text that passes but violates many rules of chemistry, with the data for a picture of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorstText {
    /// The prompt's SMILES.
    pub smiles: String,
    /// The index of the text among those of the molecule.
    pub generation: usize,
    /// The rules that it violates.
    pub findings: Vec<ChemistryFinding>,
    /// The element of each atom.
    pub elements: Vec<String>,
    /// The bonds of the SMILES as pairs of atoms, counted from 0.
    pub bonds: Vec<[usize; 2]>,
    /// The positions of the atoms in Å, superposed onto the reference, if there is one.
    pub points: Conformation,
    /// The nearest reference conformer with each atom mapped to itself, in Å.
    pub reference: Option<Conformation>,
    /// The RMSD to this reference with each atom mapped to itself, in Å.
    pub rmsd_angstrom: Option<f64>,
}
