//! What to fit.

use super::objective::Objective;
use crate::text::TrailingZeros;
use crate::tokenizer::Tokenizer;

/// Which dialects to fit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialectChoice {
    /// The corpus's own; both where it agrees with both or with neither.
    Auto,
    /// The one that keeps trailing zeros or removes them; decimals and separator are those of the corpus.
    Only(TrailingZeros),
}

/// What to fit.
pub struct FitPlan {
    /// For each of these.
    pub tokenizers: Vec<Tokenizer>,
    /// In these dialects.
    pub dialects: DialectChoice,
    /// Judged beside the users' own, and chosen from like them; three numbers each.
    pub candidates: Vec<String>,
    /// What harm means.
    pub objective: Objective,
    /// The seed of the search and of the samples.
    pub seed: u64,
    /// Whether to try placeholders per class of block.
    pub classes: bool,
}
