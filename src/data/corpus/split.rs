//! A split into training, validation and test parts by SMILES. It needs no list, so training and evaluation always agree.

use serde::Serialize;

use super::Conformer;
use drift_core::io;
use drift_core::text::skeleton::{smiles, without_needless_hydrogens};

/// The number of molecules per thousand in the test part.
const TEST_PER_MILLE: u64 = 100;
/// The number of molecules per thousand in the validation part.
const VALIDATION_PER_MILLE: u64 = 30;

/// A part of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The training part: 87 % of molecules.
    Train,
    /// The validation part, for measuring progress during training: 3 %.
    Validation,
    /// The test part, for the final evaluation: 10 %.
    Test,
}

impl Part {
    /// Returns the part of a molecule, determined by the SHA-256 of its SMILES. It is the same in every corpus and every version of
    /// drift.
    pub fn of_smiles(smiles: &str) -> Part {
        // 2⁶⁴ is so large that the remainder's bias is far below what any corpus could show.
        match io::hash_number(&[smiles.as_bytes()]) % 1000 {
            n if n < TEST_PER_MILLE => Part::Test,
            n if n < TEST_PER_MILLE + VALIDATION_PER_MILLE => Part::Validation,
            _ => Part::Train,
        }
    }

    /// Returns the part of a conformer's molecule. All conformers of a skeleton are in one part, however redundant hydrogens are written.
    pub fn from_conformer(conformer: &Conformer) -> Part {
        Part::of_smiles(&smiles(&without_needless_hydrogens(&conformer.skeleton)))
    }
}
