//! What a new vocabulary means for a model and for texts: what the reports of both ways have in common.

use serde::Serialize;

use crate::design::measured::corpus::CorpusTally;
use crate::design::rows::initial::RowsReport;
use drift_core::tokenizer::Tokenizer;

/// The schema of the reports that hold it.
pub const SCHEMA: &str = "drift.train-tokenizer/1";

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VocabularyReport {
    /// The first new id; the new ids are consecutive, if none is that of an old token.
    pub first_new_id: Option<u32>,
    /// New tokens that have ids of old ones, which went.
    #[serde(skip_serializing_if = "is_zero")]
    pub reused_ids: u64,
    /// Rows that an embedding needs: the largest id and one.
    pub embedding_rows: u64,
    /// Whether the new ids fit into a model's spare rows.
    pub embedding: EmbeddingReport,
    /// Rows to begin with that were made for the new tokens; none without a model.
    pub rows: Option<RowsReport>,
    /// Share of the corpus's blocks in the range, 0 to 1.
    pub coverage: f64,
    /// Mean tokens of a conformer's text, with its tags.
    pub tokens_per_conformer: f64,
    /// Mean tokens of a conformer's text, with its tags, by the base, if there is one.
    pub base_tokens_per_conformer: Option<f64>,
}

impl VocabularyReport {
    /// Of a tokenizer with these new tokens, of which so many have ids of old ones, measured on a corpus beside its base.
    pub fn new(
        tokenizer: &Tokenizer,
        (new_tokens, reused_ids): (&[(u32, String)], u64),
        own: &CorpusTally,
        base: Option<&CorpusTally>,
    ) -> Self {
        let largest = tokenizer.vocabulary().into_values().max();
        let embedding_rows = largest.map_or(0, |id| u64::from(id) + 1);
        // New tokens that took old ids need no rows of their own.
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

    /// Adds what is known of the model: the rows of its embedding, and the rows made for the new tokens.
    pub fn for_model(&mut self, model_rows: Option<u64>, rows: Option<RowsReport>) {
        self.embedding = EmbeddingReport::new(self.embedding_rows, self.embedding.base_rows, model_rows);
        self.rows = rows;
    }
}

// A filter of serde takes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Whether the new ids fit into a model's spare rows, or how far its embedding has to be resized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EmbeddingReport {
    /// Rows that the base's ids take.
    pub base_rows: u64,
    /// Rows of the model's embedding; none if no model is known.
    pub model_rows: Option<u64>,
    /// Of them, those that the base leaves unused.
    pub spare_rows: Option<u64>,
    /// Whether the new tokens need no more than those.
    pub fits: Option<bool>,
    /// The rows to resize to where they do not fit: the next multiple of 64 and of 128, in which matrix products are
    /// fastest on GPUs.
    pub resize_to: ResizeReport,
}

/// Rows after resizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ResizeReport {
    /// A multiple of 64.
    pub multiple_of_64: u64,
    /// A multiple of 128.
    pub multiple_of_128: u64,
}

impl EmbeddingReport {
    /// Of a vocabulary that needs `needed` rows, on top of a base that needs `base_rows`.
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
