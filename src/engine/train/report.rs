//! What training came to: the file `recipe.json` of a checkpoint.

use serde::{Deserialize, Serialize};

use super::documents::Sizes;
use super::recipe::Recipe;
use drift_core::job::Provenance;

/// The name of the report's layout.
pub const SCHEMA: &str = "drift.train-model/1";

/// A point of the loss curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Updates so far.
    pub step: u64,
    /// Tokens of documents so far.
    pub tokens: u64,
    /// Weighted mean of the targets' cross-entropy since the point before, in nats.
    pub loss: f64,
    /// Norm of the last gradient, before it was clipped.
    pub gradient_norm: f64,
    /// Learning rate of the last update.
    pub learning_rate: f64,
}

/// How well the answers of validation documents are predicted, each token after the true ones before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Updates so far.
    pub step: u64,
    /// Conformers.
    pub conformers: u64,
    /// Cross-entropy by token of an answer, in nats.
    pub nats_per_token: f64,
    /// Its sum over an answer: comparable between tokenizers.
    pub nats_per_conformer: f64,
    /// Share of COPY tokens (tags, atoms, bonds, brackets) whose most likely token is right.
    pub copy_accuracy: f64,
    /// Share of FREE tokens (in blocks) whose most likely token is right.
    pub free_accuracy: f64,
    /// Share of conformers whose every COPY token is.
    pub copied: f64,
}

/// `recipe.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Program and inputs.
    pub provenance: Provenance,
    /// Whether all steps were made.
    pub finished: bool,
    /// Every choice.
    pub recipe: Recipe,
    /// The end of text.
    pub eos_token: String,
    /// Weights, embeddings included.
    pub parameters: u64,
    /// What was learned, and what was left out.
    pub corpus: Sizes,
    /// The checkpoint as stored, in bf16, over all validation conformers; none before the end.
    pub stored: Option<Validation>,
    /// On the way, over some of them.
    pub validation: Vec<Validation>,
    /// The loss curve.
    pub curve: Vec<CurvePoint>,
}
