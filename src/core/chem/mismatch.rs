//! Why a conformer is not the molecule of a SMILES.

use std::fmt;

use super::graph::SmilesProblem;
use super::molecule::SmilesError;

/// Why a conformer is not the molecule of a SMILES. Atoms of the SMILES are numbered from 1, in its order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The SMILES is none.
    #[error("{0}")]
    Smiles(String),
    /// The file's own atoms and bonds are no molecule.
    #[error("the file's bonds do not form a valid molecule: {0}")]
    File(String),
    /// Other atoms.
    #[error("its atoms are {file}, those of the SMILES {smiles}")]
    Formula {
        /// Of the file, hydrogens included.
        file: String,
        /// Of the SMILES.
        smiles: String,
    },
    /// The same elements, but other charges, isotopes, hydrogens or valences.
    #[error("its atoms differ from the SMILES: {0}")]
    Atoms(String),
    /// The same atoms, bonded otherwise.
    #[error("its bonds differ from the SMILES")]
    Bonds,
    /// The same graph, other stereo.
    #[error("its stereo differs from the SMILES: {0}")]
    Stereo(StereoDifference),
    /// The SMILES says less than the coordinates.
    #[error("the SMILES leaves stereo open: {0}")]
    Open(StereoDifference),
    /// A text of it would be read back as another molecule.
    #[error("no text reads back as the SMILES: {0}")]
    Unreadable(&'static str),
    /// Two heavy atoms at one place.
    #[error("atoms {0} and {1} have the same position")]
    OnePlace(usize, usize),
    /// The graph has too much symmetry to be gone through.
    #[error("the molecule is too symmetric: no order of atoms was found within the step limit")]
    Symmetry,
}

/// Stereocentres and double bonds that differ, by atoms of the SMILES, numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StereoDifference {
    /// Stereocentres.
    pub centres: Vec<usize>,
    /// Double bonds.
    pub double_bonds: Vec<[usize; 2]>,
}

impl Mismatch {
    /// What is wrong with a SMILES.
    pub fn of_smiles(smiles: &str, problem: &SmilesProblem) -> Self {
        Mismatch::Smiles(SmilesError::new(smiles, problem).to_string())
    }
}

impl StereoDifference {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.centres.len() + self.double_bonds.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for StereoDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        if !self.centres.is_empty() {
            let atoms: Vec<String> = self.centres.iter().map(ToString::to_string).collect();
            write!(f, "stereocentre{} {}", plural(atoms.len()), atoms.join(", "))?;
        }
        if !self.double_bonds.is_empty() {
            let separator = if self.centres.is_empty() { "" } else { "; " };
            let bonds: Vec<String> = self.double_bonds.iter().map(|[a, b]| format!("{a}={b}")).collect();
            write!(f, "{separator}double bond{} {}", plural(bonds.len()), bonds.join(", "))?;
        }
        Ok(())
    }
}
