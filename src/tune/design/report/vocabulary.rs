//! The consequences of a new vocabulary for a model and for texts, common to all reports.

use serde::Serialize;

use crate::design::measured::corpus::CorpusTally;
use crate::design::rows::initial::RowsReport;
use drift_core::Tokenizer;

/// The schema of the reports that contain it.
pub const SCHEMA: &str = "drift.train-tokenizer/1";

/// The consequences of a new vocabulary for a model and for texts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VocabularyReport {
    /// The first new id. The new ids are consecutive unless some are those of old tokens.
    pub first_new_id: Option<u32>,
    /// The number of new tokens that took ids of removed old tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub reused_ids: u64,
    /// The number of rows that an embedding needs: the largest id plus one.
    pub embedding_rows: u64,
    /// Whether the new ids fit into a model's spare rows.
    pub embedding: EmbeddingReport,
    /// The initial rows that were computed for the new tokens; null without a model.
    pub rows: Option<RowsReport>,
    /// The share of the corpus's blocks in the range, 0 to 1.
    pub coverage: f64,
    /// The mean number of tokens of a conformer's text, including its tags.
    pub tokens_per_conformer: f64,
    /// The mean number of tokens of a conformer's text with the base, including its tags, if there is a base.
    pub base_tokens_per_conformer: Option<f64>,
}

impl VocabularyReport {
    /// For a tokenizer with these new tokens, `reused_ids` of which have ids of old ones, measured on a corpus together with its
    /// base.
    pub fn new(
        tokenizer: &Tokenizer,
        new_tokens: &[(u32, String)],
        reused_ids: u64,
        own: &CorpusTally,
        base: Option<&CorpusTally>,
    ) -> Self {
        let embedding_rows = u64::from(tokenizer.rows());
        // New tokens that took old ids need no additional rows.
        let base_rows = (embedding_rows + reused_ids).saturating_sub(new_tokens.len() as u64);
        VocabularyReport {
            first_new_id: new_tokens.first().map(|(id, _)| *id),
            reused_ids,
            embedding_rows,
            embedding: EmbeddingReport::new(embedding_rows, base_rows, None),
            rows: None,
            coverage: own.coverage(),
            tokens_per_conformer: own.tokens_per_conformer(),
            base_tokens_per_conformer: base.map(CorpusTally::tokens_per_conformer),
        }
    }

    /// Adds the facts about the model: the number of rows of its embedding, and the rows computed for the new tokens.
    pub fn for_model(&mut self, model_rows: Option<u64>, rows: Option<RowsReport>) {
        self.embedding = EmbeddingReport::new(self.embedding_rows, self.embedding.base_rows, model_rows);
        self.rows = rows;
    }
}

// serde requires that the function takes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Whether the new ids fit into a model's spare rows, and to what size its embedding has to be resized otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EmbeddingReport {
    /// The number of rows that the base's ids need.
    pub base_rows: u64,
    /// The number of rows of the model's embedding; null if no model is known.
    pub model_rows: Option<u64>,
    /// The number of these rows that the base leaves unused.
    pub spare_rows: Option<u64>,
    /// Whether the new tokens fit into the spare rows.
    pub fits: Option<bool>,
    /// The numbers of rows to resize to if they do not fit: the next multiples of 64 and of 128, for which matrix products are
    /// fastest on GPUs.
    pub resize_to: ResizeReport,
}

/// The number of rows after resizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ResizeReport {
    /// A multiple of 64.
    pub multiple_of_64: u64,
    /// A multiple of 128.
    pub multiple_of_128: u64,
}

impl EmbeddingReport {
    /// For a vocabulary that needs `needed` rows, on top of a base that needs `base_rows`.
    pub fn new(needed: u64, base_rows: u64, model_rows: Option<u64>) -> Self {
        EmbeddingReport {
            base_rows,
            model_rows,
            spare_rows: model_rows.map(|rows| rows.saturating_sub(base_rows)),
            fits: model_rows.map(|rows| needed <= rows),
            resize_to: ResizeReport {
                multiple_of_64: needed.next_multiple_of(64),
                multiple_of_128: needed.next_multiple_of(128),
            },
        }
    }
}
