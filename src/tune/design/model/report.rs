//! What was done to a model: the JSON of `drift extend-model`.

use serde::Serialize;

use crate::design::rows::recipe::RowInit;
use drift_core::encoding::Encoding;
use drift_core::job::Provenance;

/// The schema of the report.
pub const SCHEMA: &str = "drift.extend-model/1";

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExtendModelReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What made it, from what. Weights are named under `files`, and not hashed: that takes longer than to copy them.
    pub provenance: Provenance,
    /// The model's name.
    pub model: String,
    /// The name of its own tokenizer.
    pub base: String,
    /// The name of the extended one.
    pub tokenizer: String,
    /// The encoding that the tokenizer was extended for, if the files beside it say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// How new rows were made.
    pub init: RowInit,
    /// Whether the LM head is the embedding.
    pub tied: bool,
    /// Tokens that the model's own tokenizer has; all of them keep their rows.
    pub old_tokens: u64,
    /// Tokens that got rows.
    pub new_tokens: u64,
    /// Their ids: first and last.
    pub ids: Option<(u32, u32)>,
    /// Rows of the embedding before, which is `vocab_size` in `config.json`.
    pub vocab_size_before: u64,
    /// Rows of the embedding as it was written.
    pub vocab_size: u64,
    /// The tables that have a row for each token.
    pub tables: Vec<GrownTableReport>,
    /// The files that were written.
    pub files: Vec<WrittenFile>,
    /// Files of the model that were not copied: weights in other layouts, tokenizers without the new tokens, states of
    /// training.
    pub left_out: Vec<String>,
}

/// A table with its new rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GrownTableReport {
    /// `embed_tokens`, `lm_head` or `lm_head_bias`, whatever the model calls it.
    pub name: &'static str,
    /// The tensor.
    pub tensor: String,
    /// `F32`, `F16` or `BF16`, as before.
    pub dtype: String,
    /// Numbers of a row.
    pub hidden: u64,
    /// Rows before.
    pub rows_before: u64,
    /// Rows now.
    pub rows: u64,
    /// Spare rows that are now of new tokens.
    pub overwritten: u64,
    /// Rows of new tokens behind the old ones.
    pub appended: u64,
    /// Rows of no token behind the old ones.
    pub padding: u64,
    /// New tokens whose row is also that of another new token.
    pub shared_rows: u64,
    /// Mean norm of the new tokens' rows.
    pub mean_norm: f64,
}

/// A file of the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrittenFile {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}
