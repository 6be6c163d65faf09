//! The report of a designed extension: the JSON of `drift train-tokenizer --tokens-per-block` and `--budget`.

use serde::Serialize;

use super::comparison::MethodComparison;
use super::front::ParetoFront;
use super::vocabulary::VocabularyReport;
use crate::design::extension::check::Guarantees;
use crate::design::measured::corpus::MeasuredCorpus;
use crate::design::scheme::cuts::SchemeKind;
use crate::design::scheme::search::AnnealingResult;
use crate::design::scheme::slots::Range;
use crate::design::scheme::spaces::{BoundBy, ITERATIONS};
use drift_core::Encoding;
use drift_core::job::Provenance;

/// What `drift train-tokenizer` made and proved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignReport {
    /// [`SCHEMA`](super::vocabulary::SCHEMA).
    pub schema: &'static str,
    /// The program and its inputs.
    pub provenance: Provenance,
    /// The base's name.
    pub base: String,
    /// Which tokens its blocks have.
    pub kind: SchemeKind,
    /// The encoding whose blocks get new tokens.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// Blocks of numbers below this magnitude, in Å, get new tokens. Absent if the numbers are not decimals; then all blocks do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range_angstrom: Option<Range>,
    /// The smallest number of decimals of a number in these blocks: 4 in the fixed encoding. Blocks with shorter numbers keep the
    /// base's tokens, because they have too few characters.
    pub fewest_decimals: u64,
    /// The number of tokens of each of these blocks, from `<` to `>`.
    pub tokens_per_block: u64,
    /// The number of these tokens strictly between the brackets, which a position template leaves free.
    pub free_tokens_per_block: u64,
    /// The number of tokens added to the base.
    pub new_tokens: u64,
    /// Which old tokens could be replaced, if any: `unused` or `named`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse: Option<&'static str>,
    /// The largest difference between `tokens_per_block` and the number of tokens of a block of the corpus in the range. The checks
    /// have already shown that every block of the range takes exactly `tokens_per_block`.
    pub drift: u64,
    /// A lower bound: no tokenizer with as many tokens per block can do with fewer new ones, whatever its tokens are.
    pub lower_bound: u64,
    /// The method that proves the bound.
    pub lower_bound_by: BoundBy,
    /// `new_tokens` minus `lower_bound`.
    pub gap: u64,
    /// The smallest number of new tokens of any scheme in the design space. It is found exhaustively, so `new_tokens` equals it.
    pub least_in_space: u64,
    /// The result of simulated annealing with argmin.
    pub search: AnnealingReport,
    /// Blocks with `|` at the cuts, one for each number of decimals, most decimals first.
    pub examples: Vec<String>,
    /// The consequences for a model and for texts.
    #[serde(flatten)]
    pub vocabulary: VocabularyReport,
    /// The measurements on this corpus.
    pub corpus: MeasuredCorpus,
    /// This extension compared with other designs and with the base.
    pub front: ParetoFront,
    /// The checks that were run before anything was written.
    pub guarantees: Guarantees,
    /// Other methods to add as many tokens, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<MethodComparison>,
}

/// The search by simulated annealing with argmin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AnnealingReport {
    /// The seed of its random numbers.
    pub seed: u64,
    /// The number of steps.
    pub iterations: u64,
    /// The number of schemes that were evaluated.
    pub evaluations: u64,
    /// The number of new tokens of the best scheme; null if it found no scheme of the space.
    pub new_tokens: Option<u64>,
    /// Whether the search found the optimum.
    pub reached_least: bool,
}

impl AnnealingReport {
    /// Returns the report of a search with this seed, in a space whose best scheme needs `least` new tokens.
    pub fn new(annealed: &AnnealingResult, seed: u64, least: u64) -> Self {
        AnnealingReport {
            seed,
            iterations: ITERATIONS,
            evaluations: annealed.evaluations,
            new_tokens: annealed.least,
            reached_least: annealed.least == Some(least),
        }
    }
}
