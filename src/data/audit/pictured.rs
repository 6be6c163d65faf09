//! A text with all that a picture of it needs.

use serde::{Deserialize, Serialize};

use super::align::superposed;
use super::chemistry::{Chemistry, ChemistryFinding};
use super::geometry::Conformation;
use drift_core::text::skeleton;

/// A text that passes, with the data for a picture of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PicturedText {
    /// The prompt's SMILES.
    pub smiles: String,
    /// The index of the text among those of the molecule; null if its file does not state it.
    pub generation: Option<u64>,
    /// The rules of chemistry that it violates.
    pub findings: Vec<ChemistryFinding>,
    /// The element of each atom.
    pub elements: Vec<String>,
    /// The bonds of the SMILES as pairs of atoms, counted from 0.
    pub bonds: Vec<[usize; 2]>,
    /// The positions of the atoms in Å, superposed onto the reference, if there is one.
    pub points: Conformation,
    /// The reference conformer that it is laid onto, in Å, each atom beside its partner.
    pub reference: Option<Conformation>,
    /// The RMSD to this reference, atom by atom, in Å.
    pub rmsd_angstrom: Option<f64>,
}

/// A conformer of a text, as it is kept until the references are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextConformer<'t> {
    /// The skeleton of its molecule, whose atoms the points follow.
    pub skeleton: &'t str,
    pub smiles: &'t str,
    pub generation: Option<u64>,
    /// The positions in Å.
    pub points: &'t [[f64; 3]],
}

/// The reference onto which a conformer is laid.
#[derive(Debug, Clone)]
pub(super) struct LaidOnto {
    /// Its atoms in the order of the conformer's, in Å.
    pub reference: Conformation,
    /// The RMSD of the two, in Å.
    pub rmsd: f64,
}

impl TextConformer<'_> {
    /// Returns the data for a picture; `None` if the molecule cannot be checked.
    pub(super) fn pictured(&self, onto: Option<LaidOnto>) -> Option<PicturedText> {
        let chemistry = Chemistry::from_smiles(&skeleton::smiles(self.skeleton)).ok()?;
        let laid = onto
            .as_ref()
            .map_or_else(|| self.points.to_vec(), |onto| superposed(self.points, &onto.reference));
        Some(PicturedText {
            smiles: self.smiles.to_owned(),
            generation: self.generation,
            findings: chemistry.check(self.points)?.findings,
            elements: chemistry.elements().map(str::to_owned).collect(),
            bonds: chemistry.bonds().collect(),
            points: rounded(&laid),
            reference: onto.as_ref().map(|onto| rounded(&onto.reference)),
            rmsd_angstrom: onto.map(|onto| onto.rmsd),
        })
    }
}

/// Rounds to three decimals, which are enough for a picture.
fn rounded(points: &[[f64; 3]]) -> Conformation {
    points.iter().map(|point| point.map(|x| (x * 1e3).round() / 1e3)).collect()
}
