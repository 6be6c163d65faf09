//! What became of the given reference conformers.

use serde::{Deserialize, Serialize};

use crate::corpus::SkippedRecord;

/// The counts of the given reference conformers, by use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReferenceCounts {
    /// Their source, if it differs from the source of the molecules.
    pub from: Option<String>,
    /// The number of conformers with which texts are compared.
    pub used: u64,
    /// The number of these conformers whose atoms were in another order than in the prompt. A conformer that belongs to several
    /// prompts counts for each.
    pub reordered: u64,
    /// The number of conformers whose atoms are not in the order of a SMILES, so that it is unknown which atom is which.
    pub without_order: u64,
    /// The number of conformers with a prompt's graph but another stereo than the prompt.
    pub other_stereo: u64,
    /// The number of conformers of molecules that were not requested.
    pub not_asked_for: u64,
    /// The number of these molecules, by their texts.
    pub molecules_not_asked_for: u64,
    /// The number of requested molecules without a reference.
    pub prompts_without: u64,
    /// The first conformers without an order or with another stereo, with the reasons.
    #[serde(default)]
    pub unused: Vec<SkippedRecord>,
}
