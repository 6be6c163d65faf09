//! What to fit.

use serde::Serialize;

use super::objective::Objective;
use crate::text::Dialect;
use crate::tokenizer::Tokenizer;

/// Which dialects to fit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DialectChoice {
    /// The corpus's own; both where it agrees with both or with neither.
    Auto,
    /// This one, with the decimals and the separator of the corpus.
    Only(Dialect),
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
