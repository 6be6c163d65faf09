//! A molecule as a prompt asks for it, or as a worked example shows it.

use drift_core::encoding::{Encoding, Fixed};
use drift_data::corpus::Part;

/// One molecule.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMolecule {
    /// As the prompt has it.
    pub smiles: String,
    /// Its text with every block emptied.
    pub skeleton: String,
    /// The decimals of its conformers.
    pub encoding: Encoding,
    /// Reference conformers in units of the last decimal, atoms in the order of the skeleton; may be none.
    pub conformers: Vec<Vec<[Fixed; 3]>>,
    /// Which part of a corpus it falls into, where it comes from one.
    pub part: Option<Part>,
}
