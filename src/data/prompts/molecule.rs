//! A molecule for a prompt, or for a worked example.

use std::sync::Arc;

use crate::corpus::Part;
use drift_core::Encoding;
use drift_core::encoding::Fixed;

/// A molecule for a prompt or worked example.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMolecule {
    /// The SMILES in the prompt.
    pub smiles: String,
    /// Its enriched text with every block emptied.
    pub skeleton: String,
    /// The encoding of its conformers' values.
    pub encoding: Encoding,
    /// The reference conformers in units of `encoding`, with atoms in the order of the skeleton; may be empty.
    pub conformers: Vec<Vec<[Fixed; 3]>>,
    /// The part of the corpus to which it belongs, if it comes from a corpus.
    pub part: Option<Part>,
    /// The number of conformers that its file states for the isomer of a pool; `None` if its own conformers are counted.
    pub counted: Option<usize>,
    /// The isomers with which its texts are measured; `None` if it is measured on its own.
    pub pool: Option<Arc<PromptPool>>,
}

/// Isomers whose texts are measured together.
#[derive(Debug, PartialEq)]
pub struct PromptPool {
    /// The SMILES that pools them.
    pub smiles: String,
    /// The skeleton of that SMILES.
    pub skeleton: String,
    /// The encoding of the conformers' values.
    pub encoding: Encoding,
    /// The conformers of all isomers in units of `encoding`, with atoms in the order of the skeleton.
    pub conformers: Vec<Vec<[Fixed; 3]>>,
}

impl PromptMolecule {
    /// Returns the number of conformers that the number of its texts may follow.
    pub fn conformer_count(&self) -> usize {
        self.counted.unwrap_or(self.conformers.len())
    }

    /// Returns whether its texts are measured together with those of another molecule.
    pub(crate) fn is_pooled_with(&self, other: &PromptMolecule) -> bool {
        matches!((&self.pool, &other.pool), (Some(own), Some(its)) if Arc::ptr_eq(own, its))
    }
}
