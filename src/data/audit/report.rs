//! The report of an audit.

use serde::Serialize;

use super::block_faults::FaultyBlock;
use super::chemistry::ChemistryReport;
use super::coverage::MissingPolicy;
use super::energies::EnergyReport;
use super::group::FileReport;
use super::pairs::PairedComparison;
use super::runs::AuditRun;
use super::smoke::{ForeignPrompt, TheirReport};
use super::text_encoding::EncodingFrom;
use crate::corpus::SkippedRecord;
use drift_core::Encoding;
use drift_core::chem::Isotopes;
use drift_core::job::Provenance;

/// The schema of [`AuditReport`].
pub const SCHEMA: &str = "drift.audit/1";

/// The results of an audit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program and the inputs of the report.
    pub provenance: Provenance,
    /// The command that gives these results, without the files that it wrote; left out by a library.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The encoding by which texts were judged.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// How the encoding was determined.
    #[serde(rename = "dialect_from")]
    pub encoding_from: EncodingFrom,
    /// The tokenizer for counting drift.
    pub tokenizer: Option<String>,
    /// The placeholder against which drift is counted; `None` without a tokenizer.
    pub placeholder: Option<String>,
    /// By file, and by logit processor if records name one.
    pub files: Vec<FileReport>,
    /// The report over all files.
    pub total: FileReport,
    /// One entry a row, over all files: the names are those of records of `drift eval`.
    pub runs: Vec<AuditRun>,
    /// The row with which others were compared, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_row: Option<String>,
    /// Each row compared with that row, pair by pair.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<PairedComparison>,
    /// Recommendations, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
    /// The chemistry of the references of requested molecules; `None` without references.
    pub reference_chemistry: Option<ChemistryReport>,
    /// The treatment of molecules without a usable conformer in coverage and matching.
    pub missing: MissingPolicy,
    /// Whether isotope labels told molecules and their atoms apart.
    pub isotopes: Isotopes,
    /// Energies and strain; `None` without an energy program.
    pub energy: Option<EnergyReport>,
    /// The first faulty blocks of each kind.
    pub examples: Vec<FaultyBlock>,
    /// The figures that 3DMolGen's smoke reports state, beside the same figures counted here.
    pub reports_by_3dmolgen: Vec<TheirReport>,
    /// The number of distinct prompts.
    pub prompts: u64,
    /// Of these, the number that RDKit, and so 3DMolGen's encoder, would certainly spell differently: their template has a
    /// different text than the prompt. A prompt that is not counted may still differ.
    pub prompts_not_in_their_spelling: u64,
    /// The first of these prompts.
    pub foreign_prompts: Vec<ForeignPrompt>,
    /// Reasons to doubt the figures above.
    pub warnings: Vec<String>,
    /// Whether it was merged from shards of which some work is missing; the figures are then for the rest.
    pub interrupted: bool,
    /// The number of records that could not be judged.
    pub skipped: u64,
    /// The first of these records.
    pub skipped_records: Vec<SkippedRecord>,
    /// The number of rows that were not asked for.
    pub left_out: u64,
}
