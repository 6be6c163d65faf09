//! The report of a design: the JSON of `drift train-tokenizer --tokens-per-block` and `--budget`.

use serde::Serialize;

use super::comparison::MethodComparison;
use super::front::ParetoFront;
use super::vocabulary::VocabularyReport;
use crate::design::extension::check::Guarantees;
use crate::design::measured::corpus::MeasuredCorpus;
use crate::design::scheme::cuts::SchemeKind;
use crate::design::scheme::search::Annealed;
use crate::design::scheme::slots::Range;
use crate::design::scheme::spaces::{BoundBy, ITERATIONS};
use drift_core::encoding::Encoding;
use drift_core::job::Provenance;

/// What `drift train-tokenizer` made, and what it proved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignReport {
    /// [`SCHEMA`](super::vocabulary::SCHEMA).
    pub schema: &'static str,
    /// What made it, from what.
    pub provenance: Provenance,
    /// The base's name.
    pub base: String,
    /// Which tokens were allowed.
    pub kind: SchemeKind,
    /// The encoding whose blocks change.
    pub dialect: Encoding,
    /// Blocks of numbers below this magnitude, in Å, change; none where they are no decimals: all that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_angstrom: Option<Range>,
    /// The fewest decimals of a number of these blocks: 4 in the fixed dialect. Blocks of shorter numbers keep the base's
    /// tokens: they have too few characters.
    pub fewest_decimals: u64,
    /// Tokens of each of these, from `<` to `>`.
    pub tokens_per_block: u64,
    /// Of them, those that lie strictly between the brackets: what a position template leaves free.
    pub free_tokens_per_block: u64,
    /// Tokens added to the base.
    pub new_tokens: u64,
    /// Which old tokens might go for them, if any: `unused` or `named`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse: Option<&'static str>,
    /// The largest difference between `tokens_per_block` and the tokens of a block of the corpus in the range. The
    /// checks have shown before that every block of the range takes exactly as many.
    pub drift: u64,
    /// No tokenizer of as many tokens a block does with fewer new ones, whatever its tokens are.
    pub lower_bound: u64,
    /// How that is known.
    pub lower_bound_by: BoundBy,
    /// `new_tokens` less `lower_bound`.
    pub gap: u64,
    /// How many new tokens the schemes of the design space need at least; found exhaustively, so `new_tokens` equals it.
    pub least_in_space: u64,
    /// What argmin found.
    pub search: AnnealingReport,
    /// Blocks with `|` where they are cut, one for each count of decimals, most decimals first.
    pub examples: Vec<String>,
    /// What it means for a model and for texts.
    #[serde(flatten)]
    pub vocabulary: VocabularyReport,
    /// Measured on this corpus.
    pub corpus: MeasuredCorpus,
    /// The design among others, and beside the base.
    pub front: ParetoFront,
    /// What was run before anything was written.
    pub guarantees: Guarantees,
    /// Other ways to add as many tokens, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<MethodComparison>,
}

/// The search by argmin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AnnealingReport {
    /// Seed of its random numbers.
    pub seed: u64,
    /// Steps.
    pub iterations: u64,
    /// Schemes judged.
    pub evaluations: u64,
    /// New tokens of the best; none if it met no scheme of the space.
    pub new_tokens: Option<u64>,
    /// Whether that is the least there is.
    pub reached_least: bool,
}

impl AnnealingReport {
    /// Of a search with this seed, in a space whose schemes need `least` new tokens.
    pub fn new(annealed: &Annealed, seed: u64, least: u64) -> Self {
        AnnealingReport {
            seed,
            iterations: ITERATIONS,
            evaluations: annealed.evaluations,
            new_tokens: annealed.least,
            reached_least: annealed.least == Some(least),
        }
    }
}
