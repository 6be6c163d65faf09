//! The report of `drift train-tokenizer`: the JSON of its result.

use serde::Serialize;

use super::check::Guarantees;
use super::compare::Comparison;
use super::designs::BoundBy;
use super::front::Front;
use super::rows::RowsReport;
use super::scheme::{Kind, Range};
use crate::job::Provenance;
use crate::text::Dialect;

/// The schema of [`DesignReport`].
pub const SCHEMA: &str = "drift.train-tokenizer/1";

/// What `drift train-tokenizer` made, and what it proved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What made it, from what.
    pub provenance: Provenance,
    /// The base's name.
    pub base: String,
    /// Which tokens were allowed.
    pub kind: Kind,
    /// The dialect whose blocks change.
    pub dialect: Dialect,
    /// Blocks of numbers below this magnitude, in Å, change.
    pub range_angstrom: Range,
    /// The fewest decimals of a number of these blocks: 4 in the fixed dialect. Blocks of shorter numbers keep the base's
    /// tokens: they have too few characters.
    pub fewest_decimals: u64,
    /// Tokens of each of these, from `<` to `>`.
    pub tokens_per_block: u64,
    /// Of them, those that lie strictly between the brackets: what a position template leaves free.
    pub free_tokens_per_block: u64,
    /// Tokens added to the base.
    pub new_tokens: u64,
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
    pub search: SearchReport,
    /// Blocks with `|` where they are cut, one for each count of decimals, most decimals first.
    pub examples: Vec<String>,
    /// The first new id; the new ids are consecutive.
    pub first_new_id: Option<u32>,
    /// Rows that an embedding needs: the largest id and one.
    pub embedding_rows: u64,
    /// Whether the model's embedding has them.
    pub embedding: EmbeddingReport,
    /// The rows to begin with that were made; none without a model.
    pub rows: Option<RowsReport>,
    /// Share of the corpus's blocks in the range, 0 to 1.
    pub coverage: f64,
    /// Mean tokens of a conformer's text, with its tags.
    pub tokens_per_conformer: f64,
    /// The same with the base.
    pub base_tokens_per_conformer: f64,
    /// Measured on this corpus.
    pub corpus: CorpusReport,
    /// The design among others, and beside the base.
    pub front: Front,
    /// What was run before anything was written.
    pub guarantees: Guarantees,
    /// Other ways to add as many tokens, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

impl DesignReport {
    /// Adds what is known of the model: the rows of its embedding, and the rows made for the new tokens.
    pub fn for_model(&mut self, model_rows: Option<u64>, rows: Option<RowsReport>) {
        self.embedding = EmbeddingReport::of(self.embedding_rows, self.new_tokens, model_rows);
        self.rows = rows;
    }
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
    /// Of a vocabulary that needs `needed` rows, `new` of them for new tokens.
    pub fn of(needed: u64, new: u64, model_rows: Option<u64>) -> Self {
        let base_rows = needed - new.min(needed);
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

/// The search by argmin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SearchReport {
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

/// The corpus that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CorpusReport {
    /// Conformers.
    pub conformers: u64,
    /// Blocks, one per heavy atom.
    pub blocks: u64,
    /// Records that could not be read.
    pub skipped: u64,
    /// Mean difference between the tokens of a block and `tokens_per_block`, over all blocks: in the range it is 0.
    pub drift_tokens_per_block: f64,
    /// By heavy atoms of the conformer.
    pub by_size: Vec<SizeReport>,
}

/// Conformers of some sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeReport {
    /// Fewest heavy atoms.
    pub from: u64,
    /// Most heavy atoms; none if there is no limit.
    pub to: Option<u64>,
    /// Conformers.
    pub conformers: u64,
    /// Share of their blocks in the range.
    pub coverage: f64,
    /// Mean tokens.
    pub tokens_per_conformer: f64,
    /// The same with the base, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_tokens_per_conformer: Option<f64>,
}
