//! The report of `drift fit`: the JSON of its results.

use serde::{Deserialize, Serialize};

use super::certificate::Certificate;
use super::classes::PartitionReport;
use super::counts::Measures;
use super::intervals::Intervals;
use super::objective::Objective;
use super::search::SearchSettings;
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result};
use drift_core::job::Provenance;
use drift_data::corpus::Skipped;

/// The schema of [`FitReport`].
pub const SCHEMA: &str = "drift.fit/2";

/// What `drift fit` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// What made it, from what.
    pub provenance: Provenance,
    /// What was replayed.
    pub corpus: CorpusReport,
    /// What harm means.
    pub objective: Objective,
    /// One per tokenizer and dialect.
    pub results: Vec<FitResult>,
    /// Tokenizers that no position template can be used with, by dialect.
    pub refused: Vec<Refused>,
}

impl FitReport {
    /// Refuses a report without a single result.
    ///
    /// # Errors
    /// If all tokenizers were refused: why the first was.
    pub fn refuse_if_empty(&self) -> Result<()> {
        let ([], Some(refused)) = (self.results.as_slice(), self.refused.first()) else { return Ok(()) };
        let problem = format!("no placeholder fits: {}", refused.why());
        Err(Error::input(&refused.tokenizer, problem, format!("use {}", refused.instead)))
    }
}

/// A tokenizer that no position template can be used with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The tokenizer's name.
    pub tokenizer: String,
    /// SHA-256 of its file.
    pub tokenizer_sha256: String,
    /// The dialect.
    pub dialect: Encoding,
    /// Tokens that hold characters of a block and of the text around it; the first ones.
    pub tokens: Vec<String>,
    /// How many there are.
    pub token_count: u64,
    /// Blocks of the corpus in which the proof was made: those of its first conformers.
    #[serde(default)]
    pub looked_at_blocks: u64,
    /// With how many of them one template can agree at most, whatever its placeholder: all others would get a digit or a sign that is not
    /// theirs.
    #[serde(default)]
    pub agreeing_blocks: u64,
    /// Why that rules templates out, in a clause.
    pub reason: String,
    /// What to use instead.
    pub instead: String,
}

impl Refused {
    /// The tokens that rule templates out, and why, in a clause.
    pub fn why(&self) -> String {
        // An error is one line of at most 500 characters, so three tokens stand for all.
        let shown: Vec<String> =
            self.tokens.iter().take(3).map(|token| format!("`{}`", token.escape_debug())).collect();
        let others = match self.token_count.saturating_sub(shown.len() as u64) {
            0 => String::new(),
            others => format!(" and {others} others"),
        };
        let join = if self.token_count == 1 { "joins" } else { "join" };
        let harm = match self.looked_at_blocks {
            0 => String::new(),
            blocks => format!(
                ", and of {blocks} blocks no template, whatever its placeholder, agrees with more than {:.1} %",
                self.agreeing_blocks as f64 / blocks as f64 * 100.0
            ),
        };
        let shown = shown.join(", ");
        format!(
            "{shown}{others} {join} digits or signs of a block with a bracket, which a template forces{harm}"
        )
    }
}

/// The corpus of a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitResult {
    /// The tokenizer's name.
    pub tokenizer: String,
    /// SHA-256 of its file.
    pub tokenizer_sha256: String,
    /// The dialect.
    pub dialect: Encoding,
    /// Conformers replayed.
    pub conformers: u64,
    /// Blocks replayed.
    pub blocks: u64,
    /// The placeholder of least harm, without brackets.
    pub placeholder: String,
    /// Its FREE tokens.
    pub free_tokens: u32,
    /// That nothing better exists; none if a condition of the proof does not hold.
    pub certificate: Option<Certificate>,
    /// The FREE tokens that every slot takes, whatever its numbers, where all take as many: then there is no drift. Proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant_tokens: Option<u32>,
    /// Whether it is proved that no placeholder does less harm in replay, by the order and tolerance of the objective.
    pub proved: bool,
    /// What the certificate says, over which data, in which order, with which tolerance; or why there is none.
    pub statement: String,
    /// What the proof rests on.
    pub conditions: Conditions,
    /// 95 % intervals of what the chosen placeholder does, by molecule.
    pub intervals: Intervals,
    /// The placeholder to use if every lost digit counts.
    pub without_tolerance: Alternative,
    /// The users' placeholders, the ones asked for, and the chosen one, least harm first.
    pub candidates: Vec<CandidateReport>,
    /// Placeholders of which none is better in all of: unparsable blocks, RMSD, junk slots, truncated blocks; by FREE
    /// tokens.
    pub front: Vec<CandidateReport>,
    /// Blocks by T.
    pub token_distribution: Vec<TokenCount>,
    /// Blocks that no template leaves readable: they are not of the range of an extended tokenizer, and share a token with a bracket.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub crossed_blocks: u64,
    /// Whether all conditions hold, so that every count is exact.
    pub exact: bool,
    /// How blocks were counted.
    pub counted_by: String,
    /// How the search went.
    pub search: SearchReport,
    /// Conformers of the sample that intervals come from, and classes of block: a seeded sample of the whole corpus.
    pub class_conformers: u64,
    /// Placeholders per class of block; empty if they were not tried.
    pub classes: Vec<PartitionReport>,
}

/// A number of tokens and the blocks that take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCount {
    /// T.
    pub tokens: u32,
    /// How many blocks.
    pub blocks: u64,
}

/// What one placeholder does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateReport {
    /// Without brackets.
    pub placeholder: String,
    /// Where it stands, for the users' own.
    pub source: String,
    /// F.
    pub free_tokens: u32,
    /// In replay.
    #[serde(flatten)]
    pub measures: Measures,
}

/// What the proof rests on, as far as it is looked at and not proved once for all tokenizers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// Atoms of the corpus behind which blocks were encoded: no COPY token holds a character of a block, and each block
    /// takes the same tokens behind all of them.
    pub atoms: u64,
    /// Templates, of a seeded sample of the corpus's skeletons, whose FREE tokens were compared with the encoder's.
    pub templates: u64,
    /// The first that does not hold; none if all do.
    pub broken: Option<String>,
}

/// The placeholder to use if harm is something else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// Without brackets.
    pub placeholder: String,
    /// F.
    pub free_tokens: u32,
    /// That nothing better exists; none if a condition of the proof does not hold.
    pub certificate: Option<Certificate>,
}

/// The search for one placeholder, by argmin, which knows nothing of the construction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchReport {
    /// Seed and steps.
    #[serde(flatten)]
    pub settings: SearchSettings,
    /// Strings that there are: three numbers of the dialect.
    pub strings: f64,
    /// Strings judged.
    pub evaluations: u64,
    /// How many of them until nothing less harmful came.
    pub evaluations_to_best: u64,
    /// The best of them.
    pub placeholder: String,
    /// `[u, r, j]` of it.
    pub objective: [f64; 3],
    /// Whether argmin reached the bound by itself.
    pub reached_bound: bool,
    /// Whether it found something no worse than what was constructed.
    pub reached_chosen: bool,
}

/// For serde, which hands on a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
