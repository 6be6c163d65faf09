//! What an audit comes to.

use serde::Serialize;

use super::block_faults::FaultyBlock;
use super::chemistry::ChemistryReport;
use super::coverage::Missing;
use super::energies::EnergyReport;
use super::group::FileReport;
use super::smoke::{ForeignPrompt, TheirReport};
use crate::corpus::Skipped;
use drift_core::encoding::Encoding;
use drift_core::job::Provenance;

/// The schema of [`AuditReport`].
pub const SCHEMA: &str = "drift.audit/1";

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What made it, from what.
    pub provenance: Provenance,
    /// How numbers should be written.
    pub dialect: Encoding,
    /// Where the dialect is from.
    pub dialect_from: DialectFrom,
    /// The tokenizer of drift.
    pub tokenizer: Option<String>,
    /// What drift is counted against; none without a tokenizer.
    pub placeholder: Option<String>,
    /// By file, and by logit processor where records name one.
    pub files: Vec<FileReport>,
    /// Of all files.
    pub total: FileReport,
    /// The chemistry of the references of molecules that were asked for; none without references.
    pub reference_chemistry: Option<ChemistryReport>,
    /// What became of molecules without a usable conformer in coverage and matching.
    pub missing: Missing,
    /// Energies and strain; none without a program that computes them.
    pub energy: Option<EnergyReport>,
    /// The first faults of each kind.
    pub examples: Vec<FaultyBlock>,
    /// What 3DMolGen's smoke reports say of themselves, beside the same counted here.
    pub reports_by_3dmolgen: Vec<TheirReport>,
    /// Distinct prompts.
    pub prompts: u64,
    /// Of them, those that RDKit, and so 3DMolGen's encoder, certainly does not write like this: their template has another
    /// text than the prompt. A prompt that is not counted may still be none of theirs.
    pub prompts_not_in_their_spelling: u64,
    /// The first of them.
    pub foreign_prompts: Vec<ForeignPrompt>,
    /// What makes the figures above mean less than they seem to.
    pub warnings: Vec<String>,
    /// Records that could not be judged.
    pub skipped: u64,
    /// The first of them.
    pub skipped_records: Vec<Skipped>,
}

/// Where the dialect is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DialectFrom {
    /// The user.
    Given,
    /// The recipe of the model.
    Recipe,
    /// Blocks that only one dialect has.
    Texts,
    /// The reference conformers, where the texts do not tell.
    References,
}
