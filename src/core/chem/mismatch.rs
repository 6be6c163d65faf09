//! Why a conformer is not the molecule of a SMILES.

use std::fmt;

use super::graph::SmilesProblem;
use super::molecule::SmilesError;

/// Why a conformer is not the molecule of a SMILES. Atoms of the SMILES are numbered from 1, in its order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The text is not a SMILES.
    #[error("{0}")]
    Smiles(String),
    /// The file's own atoms and bonds do not form a valid molecule.
    #[error("the file's bonds do not form a valid molecule: {0}")]
    File(String),
    /// The elements differ.
    #[error("its atoms are {file}, those of the SMILES {smiles}")]
    Formula {
        /// The formula of the file, hydrogens included.
        file: String,
        /// The formula of the SMILES.
        smiles: String,
    },
    /// The elements agree, but charges, isotopes, hydrogens or valences differ.
    #[error("its atoms differ from the SMILES: {0}")]
    Atoms(String),
    /// The atoms agree, but not the bonds between them.
    #[error("its bonds differ from the SMILES")]
    Bonds,
    /// The graph agrees, but not the stereo.
    #[error("its stereo differs from the SMILES: {0}")]
    Stereo(StereoDifference),
    /// The coordinates have stereo that the SMILES does not specify.
    #[error("the SMILES leaves stereo open: {0}")]
    Open(StereoDifference),
    /// A text of the molecule would be read back as another molecule.
    #[error("no text reads back as the SMILES: {0}")]
    Unreadable(&'static str),
    /// Two heavy atoms have the same position.
    #[error("atoms {0} and {1} have the same position")]
    OnePlace(usize, usize),
    /// The graph has too much symmetry: the search was given up.
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
    /// Returns the mismatch for a SMILES with this problem.
    pub fn of_smiles(smiles: &str, problem: &SmilesProblem) -> Self {
        Mismatch::Smiles(SmilesError::new(smiles, problem).to_string())
    }
}

impl StereoDifference {
    /// Returns the number of differing stereocentres and double bonds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.centres.len() + self.double_bonds.len()
    }

    /// Returns whether nothing differs.
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
