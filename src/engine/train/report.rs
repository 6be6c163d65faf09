//! The report of a training: the file `recipe.json` of a checkpoint.

use serde::{Deserialize, Serialize};

use super::documents::Sizes;
use super::recipe::Recipe;
use drift_core::job::Provenance;

/// The version of the report's format.
pub const SCHEMA: &str = "drift.train-model/1";

/// A point of the loss curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The number of updates so far.
    pub step: u64,
    /// The number of document tokens so far.
    pub tokens: u64,
    /// The weighted mean of the targets' cross-entropy since the previous point, in nats.
    pub loss: f64,
    /// The norm of the last gradient before clipping.
    pub gradient_norm: f64,
    /// The learning rate of the last update.
    pub learning_rate: f64,
}

/// How well the answers of validation documents are predicted. Each token is predicted from the true tokens before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The number of updates so far.
    pub step: u64,
    /// The number of conformers.
    pub conformers: u64,
    /// The cross-entropy per token of an answer, in nats; `None`, as the figures below, over nothing.
    pub nats_per_token: Option<f64>,
    /// The cross-entropy per answer, in nats, which is comparable between tokenizers.
    pub nats_per_conformer: Option<f64>,
    /// The share of COPY tokens (tags, atoms, bonds, brackets) whose most likely token is right.
    pub copy_accuracy: Option<f64>,
    /// The share of FREE tokens (in blocks) whose most likely token is right.
    pub free_accuracy: Option<f64>,
    /// The share of conformers for which this holds for every COPY token.
    pub copied: Option<f64>,
}

/// The content of `recipe.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program and its inputs.
    pub provenance: Provenance,
    /// Whether all steps were made.
    pub finished: bool,
    /// The recipe.
    pub recipe: Recipe,
    /// The end token.
    pub eos_token: String,
    /// The number of weights, including embeddings.
    pub parameters: u64,
    /// The sizes of the corpus parts, and the numbers of skipped records.
    pub corpus: Sizes,
    /// The validation of the checkpoint as stored, rounded to its number type, on all validation conformers; `None` before the end.
    pub stored: Option<Validation>,
    /// Validations during training, on some of the conformers.
    pub validation: Vec<Validation>,
    /// The loss curve.
    pub curve: Vec<CurvePoint>,
}
