//! A molecule as a prompt asks for it, or as a worked example shows it.

use std::sync::Arc;

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
    /// How many conformers it has by what its file says of the isomers of a pool; none where its own are counted.
    pub counted: Option<usize>,
    /// The isomers that its texts are measured with; none where it stands for itself.
    pub pool: Option<Arc<PromptPool>>,
}

/// Isomers whose texts are measured together.
#[derive(Debug, PartialEq)]
pub struct PromptPool {
    /// The SMILES that pools them.
    pub smiles: String,
    /// Its skeleton.
    pub skeleton: String,
    /// The decimals of the conformers.
    pub encoding: Encoding,
    /// The conformers of all of them in units of the last decimal, atoms in the order of the skeleton.
    pub conformers: Vec<Vec<[Fixed; 3]>>,
}

impl PromptMolecule {
    /// Conformers that the number of its texts may follow.
    pub fn conformer_count(&self) -> usize {
        self.counted.unwrap_or(self.conformers.len())
    }

    /// Whether its texts are measured together with those of another one.
    pub fn is_pooled_with(&self, other: &PromptMolecule) -> bool {
        matches!((&self.pool, &other.pool), (Some(own), Some(its)) if Arc::ptr_eq(own, its))
    }
}
