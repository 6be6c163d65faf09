//! Compares the geometry of generated conformers with reference conformers of the same molecule. Atoms are in SMILES order.

use rayon::prelude::*;
use serde::Serialize;

use super::superposition::{CentredConformer, LeastRmsd, Superposition};
use drift_core::chem::symmetry::Symmetries;
use drift_core::chem::{AtomLimit, Isotopes, Molecule, SmilesError};
use drift_core::text::skeleton::smiles;
use drift_core::vector::distance;

/// The coverage threshold that 3DMolGen reports, in Å.
pub const COVERAGE_THRESHOLD_ANGSTROM: f64 = 0.75;

/// The positions of one conformer's atoms, in Å.
pub type Conformation = Vec<[f64; 3]>;

/// The precomputed data of a molecule for comparing its conformers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    bonds: Vec<[usize; 2]>,
    atoms: usize,
    superposition: Superposition,
}

impl Topology {
    /// Returns the molecule of a skeleton, [`drift_core::text::skeleton`], without isotope labels: atoms that differ only by them are
    /// equivalent.
    ///
    /// # Errors
    /// If its text is not a SMILES, or RDKit would refuse it.
    pub fn new(skeleton: &str) -> Result<Self, SmilesError> {
        Topology::with_isotopes(skeleton, Isotopes::Ignore)
    }

    /// [`Topology::new`], with the isotope labels that count.
    ///
    /// # Errors
    /// As [`Topology::new`].
    pub(crate) fn with_isotopes(skeleton: &str, isotopes: Isotopes) -> Result<Self, SmilesError> {
        Ok(Topology::of(&Molecule::of_smiles_with(&smiles(skeleton), isotopes)?))
    }

    /// Returns the molecule of a skeleton without the hydrogen atoms that a count can replace. Its atoms are those of
    /// [`MolecularIdentity::kept`](drift_core::chem::MolecularIdentity::kept).
    ///
    /// # Errors
    /// As [`Topology::new`].
    pub fn without_hydrogens(skeleton: &str, isotopes: Isotopes) -> Result<Self, SmilesError> {
        let molecule = Molecule::without_hydrogens(&smiles(skeleton), AtomLimit::default(), isotopes)?;
        Ok(Topology::of(&molecule))
    }

    fn of(molecule: &Molecule) -> Self {
        let atoms = molecule.atoms.len();
        let superposition = Superposition::new(Symmetries::of_rmsd(molecule), atoms);
        Topology { bonds: molecule.pairs(), atoms, superposition }
    }

    /// Returns the number of atoms.
    pub fn atoms(&self) -> usize {
        self.atoms
    }

    /// By conformer, the mean over bonds of `|d - mean of d over the references|`, in Å; `None` without bonds or references, or if
    /// the numbers of atoms differ.
    pub(crate) fn bond_length_errors(
        &self,
        generated: &[Conformation],
        references: &[Conformation],
    ) -> Vec<Option<f64>> {
        let means = self.mean_lengths(references);
        generated.iter().map(|one| self.off_lengths(one, means.as_ref()?)).collect()
    }

    /// Returns the mean length of each bond, in Å; `None` without bonds or references.
    fn mean_lengths(&self, references: &[Conformation]) -> Option<Vec<f64>> {
        let sizes_agree = references.iter().all(|reference| reference.len() == self.atoms);
        if self.bonds.is_empty() || references.is_empty() || !sizes_agree {
            return None;
        }
        Some(self.bonds.iter().map(|&bond| mean_length(bond, references)).collect())
    }

    fn off_lengths(&self, generated: &[[f64; 3]], means: &[f64]) -> Option<f64> {
        if generated.len() != self.atoms {
            return None;
        }
        let errors = self.bonds.iter().zip(means);
        let errors = errors.map(|(&[i, j], mean)| (distance(generated[i], generated[j]) - mean).abs());
        Some(errors.sum::<f64>() / self.bonds.len() as f64)
    }

    /// Returns the least RMSD of two conformers after alignment, over symmetric atom orders, in Å: RDKit's `GetBestRMS`. `None` if the
    /// numbers of atoms differ.
    pub fn rmsd(&self, a: &[[f64; 3]], b: &[[f64; 3]]) -> Option<f64> {
        self.least_rmsd(a, b).map(|least| least.rmsd)
    }

    /// [`Topology::rmsd`], and whether it is proved to be the least.
    pub fn least_rmsd(&self, a: &[[f64; 3]], b: &[[f64; 3]]) -> Option<LeastRmsd> {
        let fits = a.len() == self.atoms && b.len() == self.atoms;
        fits.then(|| self.superposition.rmsd(&CentredConformer::new(a), &CentredConformer::new(b)))
    }

    /// Returns the points of `b` in the atom order that is nearest to `a`, so that atoms with the same index lie on one another; `None`
    /// if the numbers of atoms differ.
    pub(super) fn nearest_order(&self, a: &[[f64; 3]], b: &[[f64; 3]]) -> Option<Conformation> {
        let fits = a.len() == self.atoms && b.len() == self.atoms;
        let order =
            fits.then(|| self.superposition.order(&CentredConformer::new(a), &CentredConformer::new(b)))?;
        Some(order.into_iter().map(|atom| b[atom]).collect())
    }

    /// Returns the RMSDs of all pairs, `[generated][references]`, in Å; `None` if the numbers of atoms differ.
    pub fn deviations(
        &self,
        generated: &[Conformation],
        references: &[Conformation],
    ) -> Option<Vec<Vec<LeastRmsd>>> {
        let centred = |conformers: &[Conformation]| -> Option<Vec<CentredConformer>> {
            let one =
                |points: &Conformation| (points.len() == self.atoms).then(|| CentredConformer::new(points));
            conformers.iter().map(one).collect()
        };
        let (generated, references) = (centred(generated)?, centred(references)?);
        let row = |g: &CentredConformer| references.iter().map(|r| self.superposition.rmsd(g, r)).collect();
        Some(generated.par_iter().map(row).collect())
    }

    /// Returns the least RMSD of two centred conformers, which must have as many atoms as the molecule.
    pub(super) fn centred_rmsd(&self, a: &CentredConformer, b: &CentredConformer) -> LeastRmsd {
        self.superposition.rmsd(a, b)
    }

    /// Returns the orbits of atoms that symmetric orders exchange; fixed atoms are left out.
    pub(super) fn orbits(&self) -> Vec<Vec<usize>> {
        self.superposition.orbits()
    }
}

/// Returns the mean length of a bond over references, in Å.
fn mean_length([i, j]: [usize; 2], references: &[Conformation]) -> f64 {
    let lengths = references.iter().map(|reference| distance(reference[i], reference[j]));
    lengths.sum::<f64>() / references.len() as f64
}

/// How well the generated conformers of one molecule cover its references, and the reverse.
///
/// G. Simm and J. M. Hernández-Lobato, ICML 2020; precision as in O. Ganea et al., NeurIPS 2021.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coverage {
    /// COV-R: the share of references with a generated conformer within the threshold.
    pub cov_recall: f64,
    /// MAT-R: the mean over references of the least RMSD, in Å; `None` without generated conformers.
    pub mat_recall_angstrom: Option<f64>,
    /// COV-P: the share of generated conformers with a reference within the threshold; `None` without generated conformers.
    pub cov_precision: Option<f64>,
    /// MAT-P: the mean over generated conformers of the least RMSD, in Å; `None` without generated conformers.
    pub mat_precision_angstrom: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_and_symmetric_atoms() {
        // Propane lies the other way round: another order of atoms, the same molecule.
        let propane = Topology::new("[C]<>[C]<>[C]<>").unwrap();
        assert_eq!(propane.atoms(), 3);
        let a = vec![[0.0; 3], [1.5, 0.0, 0.0], [2.0, 1.2, 0.0]];
        let b: Vec<[f64; 3]> = a.iter().rev().copied().collect();
        assert!(propane.rmsd(&a, &b).unwrap() < 1e-7);
        assert_eq!(propane.rmsd(&a, &b[..2]), None);
        let longer = vec![[0.0; 3], [1.7, 0.0, 0.0], [1.7, 1.3, 0.0]];
        let references = [a.clone(), longer.clone()];
        // Means 1.6 and 1.3; `a` is 0.1 and 0 off.
        let errors = propane.bond_length_errors(std::slice::from_ref(&a), &references);
        assert!((errors[0].unwrap() - 0.05).abs() < 1e-12);
        assert_eq!(propane.bond_length_errors(&[a], &[]), [None]);
    }
}
