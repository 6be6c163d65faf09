//! The report of `drift fit`: the JSON of its results.

use serde::Serialize;

use super::certificate::Certificate;
use super::classes::PartitionReport;
use super::evidence::Measures;
use super::objective::Objective;
use super::search::SearchSettings;
use crate::corpus::Skipped;
use crate::job::Provenance;
use crate::text::Dialect;

/// The schema of [`FitReport`].
pub const SCHEMA: &str = "drift.fit/1";

/// What `drift fit` found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What made it, from what.
    pub provenance: Provenance,
    /// What was replayed.
    pub corpus: CorpusReport,
    /// What harm means.
    pub objective: Objective,
    /// One per tokenizer and dialect.
    pub results: Vec<FitResult>,
}

/// The corpus of a fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CorpusReport {
    /// Conformers read.
    pub conformers: u64,
    /// Blocks, one per heavy atom.
    pub blocks: u64,
    /// Conformers from formats without text, counted as chains of bare atoms.
    pub in_file_order: u64,
    /// Records that could not be read.
    pub skipped: u64,
    /// The first of them.
    pub skipped_records: Vec<Skipped>,
}

/// The result for one tokenizer and dialect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitResult {
    /// The tokenizer's name.
    pub tokenizer: String,
    /// SHA-256 of its file.
    pub tokenizer_sha256: String,
    /// The dialect.
    pub dialect: Dialect,
    /// Conformers replayed.
    pub conformers: u64,
    /// Blocks replayed.
    pub blocks: u64,
    /// The placeholder of least harm, without brackets.
    pub placeholder: String,
    /// Its FREE tokens.
    pub free_tokens: u32,
    /// That nothing better exists.
    pub certificate: Certificate,
    /// The users' placeholders, the ones asked for, and the chosen one, least harm first.
    pub candidates: Vec<CandidateReport>,
    /// Blocks by T.
    pub token_distribution: Vec<TokenCount>,
    /// Whether every count is exact.
    pub exact: bool,
    /// How blocks were counted.
    pub counted_by: String,
    /// How the search went.
    pub search: SearchReport,
    /// Conformers that classes of block were judged on: the first ones of the corpus; 0 if they were not tried.
    pub class_conformers: u64,
    /// Placeholders per class of block; empty if they were not tried.
    pub classes: Vec<PartitionReport>,
}

/// A number of tokens and the blocks that take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TokenCount {
    /// T.
    pub tokens: u32,
    /// How many blocks.
    pub blocks: u64,
}

/// What one placeholder does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateReport {
    /// Without brackets.
    pub placeholder: String,
    /// Where it stands, for the users' own.
    pub source: String,
    /// F after the most common kind of atom.
    pub free_tokens: u32,
    /// In replay.
    #[serde(flatten)]
    pub measures: Measures,
}

/// The search for one placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SearchReport {
    /// Seed and steps.
    #[serde(flatten)]
    pub settings: SearchSettings,
    /// Placeholders judged.
    pub evaluations: u64,
    /// Whether argmin reached the bound by itself.
    pub reached_bound: bool,
}
