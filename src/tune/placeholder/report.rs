//! The report of `drift fit`: the JSON of its results.

use serde::{Deserialize, Serialize};

use super::certificate::Certificate;
use super::classes::PartitionReport;
use super::counts::Measures;
use super::intervals::Intervals;
use super::objective::Objective;
use super::search::SearchSettings;
use drift_core::job::Provenance;
use drift_core::{Encoding, Error, Result};
use drift_data::corpus::SkippedRecord;

/// The value of [`FitReport::schema`].
pub const SCHEMA: &str = "drift.fit/2";

/// The results of `drift fit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// The program and its inputs.
    pub provenance: Provenance,
    /// The corpus that was replayed.
    pub corpus: CorpusReport,
    /// The definition of harm.
    pub objective: Objective,
    /// One result per tokenizer and encoding.
    pub results: Vec<FitResult>,
    /// The tokenizers for which position templates cannot be used, by encoding.
    pub refused: Vec<RefusedTokenizer>,
}

impl FitReport {
    /// Refuses a report without any result.
    ///
    /// # Errors
    /// If all tokenizers were refused. The error gives the reason for the first.
    pub fn refuse_if_empty(&self) -> Result<()> {
        let ([], Some(refused)) = (self.results.as_slice(), self.refused.first()) else { return Ok(()) };
        let problem = format!("no placeholder fits: {}", refused.why());
        Err(Error::input(&refused.tokenizer, problem, format!("use {}", refused.instead)))
    }
}

/// A tokenizer for which position templates cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedTokenizer {
    /// The tokenizer's name.
    pub tokenizer: String,
    /// The SHA-256 of its file.
    pub tokenizer_sha256: String,
    /// The encoding.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// The first of the tokens that contain characters of a block and of the text around it.
    pub tokens: Vec<String>,
    /// The number of such tokens.
    pub token_count: u64,
    /// The number of blocks of the corpus with which this was proved; they are those of its first conformers.
    #[serde(default)]
    pub looked_at_blocks: u64,
    /// The largest number of these blocks that one template can agree with, whatever its placeholder. All others would get a wrong
    /// digit or sign.
    #[serde(default)]
    pub agreeing_blocks: u64,
    /// The reason why this rules templates out, as a clause.
    pub reason: String,
    /// The logit processor to use instead.
    pub instead: String,
}

impl RefusedTokenizer {
    /// Returns the tokens that rule templates out, and the reason, as a clause.
    pub fn why(&self) -> String {
        // An error is one line of at most 500 characters, so at most three tokens are shown.
        let shown: Vec<String> =
            self.tokens.iter().take(3).map(|token| format!("`{}`", token.escape_debug())).collect();
        let others = match self.token_count.saturating_sub(shown.len() as u64) {
            0 => String::new(),
            others => format!(" and {others} others"),
        };
        let join = if self.token_count == 1 { "joins" } else { "join" };
        let harm = match self.looked_at_blocks {
            0 => String::new(),
            // A corpus of a few blocks may have only such that agree.
            blocks if blocks == self.agreeing_blocks => String::new(),
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
    /// The number of conformers that were read.
    pub conformers: u64,
    /// The number of blocks, one per heavy atom.
    pub blocks: u64,
    /// The number of conformers from formats without text, counted as chains of bare atoms.
    pub in_file_order: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
    /// The first of these records, with the reasons.
    pub skipped_records: Vec<SkippedRecord>,
}

/// The result for one tokenizer and encoding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitResult {
    /// The tokenizer's name.
    pub tokenizer: String,
    /// The SHA-256 of its file.
    pub tokenizer_sha256: String,
    /// The encoding.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// The number of replayed conformers.
    pub conformers: u64,
    /// The number of replayed blocks.
    pub blocks: u64,
    /// The placeholder of least harm, without brackets.
    pub placeholder: String,
    /// The number of its FREE tokens.
    pub free_tokens: u32,
    /// The proof that nothing better exists; `None` if a condition of the proof does not hold.
    pub certificate: Option<Certificate>,
    /// The number of FREE tokens of every slot, whatever its numbers, if it is the same for all slots. Then there is no drift. This
    /// is proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constant_tokens: Option<u32>,
    /// Whether it is proved that no placeholder does less harm in replay, by the order and tolerance of the objective.
    pub proved: bool,
    /// The statement of the certificate: over which data, in which order, with which tolerance. Or the reason why there is none.
    pub statement: String,
    /// The conditions of the proof.
    pub conditions: Conditions,
    /// The 95 % confidence intervals of the chosen placeholder's effects, computed over molecules.
    pub intervals: Intervals,
    /// The placeholder to use if every lost digit counts.
    pub without_tolerance: Alternative,
    /// 3DMolGen's placeholders, the requested ones and the chosen one, least harm first.
    pub candidates: Vec<CandidateReport>,
    /// The placeholders that no other placeholder beats in all of: unparsable blocks, RMSD, junk slots, truncated blocks. Sorted by
    /// FREE tokens.
    pub front: Vec<CandidateReport>,
    /// The number of blocks for each T.
    pub token_distribution: Vec<TokenCount>,
    /// The number of blocks that no template leaves readable: they are outside the range of an extended tokenizer and share a token
    /// with a bracket.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub crossed_blocks: u64,
    /// Whether all conditions hold, so that every count is exact.
    pub exact: bool,
    /// The method by which blocks were counted.
    pub counted_by: String,
    /// The course of the search.
    pub search: SearchReport,
    /// The number of conformers in the seeded sample of the whole corpus that gives the intervals and the classes of block.
    pub class_conformers: u64,
    /// The placeholders per class of block; empty if they were not fitted.
    pub classes: Vec<PartitionReport>,
    /// Blocks of the corpus beside placeholders, for the page alone: no file of results has them.
    #[serde(skip)]
    pub drawn: Vec<BlockDrift>,
}

/// The tokens of a real block and of the placeholder in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDrift {
    /// The placeholder, without brackets.
    pub placeholder: String,
    /// The text between the brackets of the real block.
    pub block: String,
    /// The FREE tokens of the placeholder in the context of the block; their number is F.
    pub slots: Vec<String>,
    /// The FREE tokens of the block in its context; their number is T.
    pub tokens: Vec<String>,
}

impl BlockDrift {
    /// Returns what is left of the block under the template: its first F tokens.
    pub fn left(&self) -> String {
        self.tokens.iter().take(self.slots.len()).map(String::as_str).collect()
    }
}

/// A number of tokens, with the number of blocks that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCount {
    /// T.
    pub tokens: u32,
    /// The number of blocks.
    pub blocks: u64,
}

/// The effects of one placeholder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateReport {
    /// The placeholder, without brackets.
    pub placeholder: String,
    /// The source of the placeholder, for 3DMolGen's own.
    pub source: String,
    /// F, the number of its FREE tokens.
    pub free_tokens: u32,
    /// The effects in replay.
    #[serde(flatten)]
    pub measures: Measures,
}

/// The conditions of the proof that are tested, and not proved once for all tokenizers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// The number of atoms of the corpus after which blocks were encoded. No COPY token may contain a character of a block, and
    /// each block must have the same tokens after all of these atoms.
    pub atoms: u64,
    /// The number of templates, for a seeded sample of the corpus's skeletons, whose FREE tokens were compared with the encoder's.
    pub templates: u64,
    /// The first condition that does not hold; `None` if all do.
    pub broken: Option<String>,
}

/// The placeholder for another definition of harm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// The placeholder, without brackets.
    pub placeholder: String,
    /// F, the number of its FREE tokens.
    pub free_tokens: u32,
    /// The proof that nothing better exists; `None` if a condition of the proof does not hold.
    pub certificate: Option<Certificate>,
}

/// The search for one placeholder with argmin, which does not use the construction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchReport {
    /// The seed and the number of steps.
    #[serde(flatten)]
    pub settings: SearchSettings,
    /// The number of strings of three numbers in the encoding.
    pub strings: f64,
    /// The number of strings that were judged.
    pub evaluations: u64,
    /// The number of judged strings until the least harmful one was found.
    pub evaluations_to_best: u64,
    /// The best string.
    pub placeholder: String,
    /// The objective `[u, r, j]` of the best string.
    pub objective: [f64; 3],
    /// Whether argmin reached the bound by itself.
    pub reached_bound: bool,
    /// Whether argmin found a placeholder that is no worse than the constructed one.
    pub reached_chosen: bool,
}

/// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
