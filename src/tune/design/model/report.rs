//! The report on an extended model: the JSON of `drift extend-model`.

use serde::Serialize;

use crate::design::rows::recipe::RowInit;
use drift_core::Encoding;
use drift_core::job::Provenance;

/// The schema of the report.
pub const SCHEMA: &str = "drift.extend-model/1";

/// The report on an extended model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExtendModelReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program and its inputs. Weights are listed under `files` without a hash, since hashing takes longer than copying them.
    pub provenance: Provenance,
    /// The model's name.
    pub model: String,
    /// The name of its own tokenizer.
    pub base: String,
    /// The name of the extended tokenizer.
    pub tokenizer: String,
    /// The encoding for which the tokenizer was extended, if the files next to it state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// How the new rows were computed.
    pub init: RowInit,
    /// Whether the LM head shares the embedding's weights.
    pub tied: bool,
    /// The number of tokens of the model's own tokenizer that keep their rows: all but those that new ones replace.
    pub old_tokens: u64,
    /// The number of new tokens, which got rows.
    pub new_tokens: u64,
    /// The first and last id of the new tokens.
    pub ids: Option<(u32, u32)>,
    /// The number of embedding rows before, `vocab_size` in `config.json`.
    pub vocab_size_before: u64,
    /// The number of embedding rows in the new checkpoint.
    pub vocab_size: u64,
    /// The tables with a row for each token.
    pub tables: Vec<GrownTableReport>,
    /// The files that were written.
    pub files: Vec<WrittenFile>,
    /// The model's files that were not copied: weights in other layouts, tokenizers without the new tokens, and states of training.
    pub left_out: Vec<String>,
}

/// A table with new rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GrownTableReport {
    /// `embed_tokens`, `lm_head` or `lm_head_bias`, regardless of the model's name for it.
    pub name: &'static str,
    /// The name of the tensor.
    pub tensor: String,
    /// The number type `F32`, `F16` or `BF16`, unchanged.
    pub dtype: String,
    /// The number of values in a row.
    pub hidden: u64,
    /// The number of rows before.
    pub rows_before: u64,
    /// The number of rows now.
    pub rows: u64,
    /// The number of spare rows that now belong to new tokens.
    pub overwritten: u64,
    /// The number of rows of new tokens after the old rows.
    pub appended: u64,
    /// The number of rows without a token after the old rows.
    pub padding: u64,
    /// The number of new tokens that have the same row as another new token.
    pub shared_rows: u64,
    /// The mean norm of the new tokens' rows.
    pub mean_norm: f64,
}

/// A file of the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrittenFile {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}
