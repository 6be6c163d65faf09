//! Which molecules a model may see: a split by SMILES that needs no list, so that training and evaluation agree.

use serde::Serialize;

use super::Conformer;
use drift_core::io;
use drift_core::text::skeleton::{smiles, without_needless_hydrogens};

/// Of a thousand molecules, how many are for tests.
const TEST_PER_MILLE: u64 = 100;
/// Of a thousand molecules, how many are for validation.
const VALIDATION_PER_MILLE: u64 = 30;

/// A part of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// What a model learns from: 87 % of molecules.
    Train,
    /// What tells how far it is: 3 %.
    Validation,
    /// What it is judged by: 10 %.
    Test,
}

impl Part {
    /// The part of a molecule, by the SHA-256 of its SMILES: the same in every corpus and every version of drift.
    pub fn of_smiles(smiles: &str) -> Part {
        // A share of 2⁶⁴ as near to a thousandth as any corpus could tell.
        match io::hash_number(&[smiles.as_bytes()]) % 1000 {
            n if n < TEST_PER_MILLE => Part::Test,
            n if n < TEST_PER_MILLE + VALIDATION_PER_MILLE => Part::Validation,
            _ => Part::Train,
        }
    }

    /// The part of a conformer's molecule: all conformers of a skeleton fall into one part, however hydrogens that
    /// need not be written are spelled.
    pub fn from_conformer(conformer: &Conformer) -> Part {
        Part::of_smiles(&smiles(&without_needless_hydrogens(&conformer.skeleton)))
    }
}
