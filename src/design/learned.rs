//! The report of tokenizers that are learned from a corpus: continued BPE, and BPE from nothing.

use serde::Serialize;

use super::check::Guarantees;
use super::compare::Comparison;
use super::measure::BlockTokens;
use super::report::{CorpusReport, EmbeddingReport};
use super::rows::RowsReport;
use super::scheme::{Kind, Range};
use crate::job::Provenance;
use crate::text::Dialect;

/// How a tokenizer was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Continued BPE on top of a base.
    Merges,
    /// BPE from nothing.
    VocabSize,
}

/// What `drift train-tokenizer` learned, and what it proved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearnedReport {
    /// [`super::report::SCHEMA`].
    pub schema: &'static str,
    /// What made it, from what.
    pub provenance: Provenance,
    /// How it was learned.
    pub way: Way,
    /// The base's name, if there is one.
    pub base: Option<String>,
    /// Which tokens were allowed.
    pub kind: Kind,
    /// The dialect whose blocks are cut by the scheme.
    pub dialect: Dialect,
    /// Blocks of numbers below this magnitude, in Å, are cut by the scheme.
    pub range_angstrom: Range,
    /// New tokens: those added to the base, or all of the vocabulary.
    pub new_tokens: u64,
    /// Of them, those made by merges; the others are looked up as whole pieces.
    pub merges: u64,
    /// Tokens that would only have been steps on the way to others, and were replaced.
    pub replaced: u64,
    /// What most blocks of the corpus take, from `<` to `>`.
    pub tokens_per_block: u64,
    /// The fewest that a block of the range can take, found over all of them.
    pub fewest_tokens_per_block: u64,
    /// The most.
    pub most_tokens_per_block: u64,
    /// The largest difference between `tokens_per_block` and the tokens of any block of the range.
    pub drift: u64,
    /// The blocks of the corpus.
    pub blocks: BlockTokens,
    /// Under fewer new tokens than this, some block of the range takes more than `most_tokens_per_block`; see
    /// [`super::bound`].
    pub lower_bound: u64,
    /// `new_tokens` less `lower_bound`.
    pub gap: u64,
    /// A block, with `|` where it is cut before merges.
    pub example: String,
    /// The first new id; the new ids are consecutive.
    pub first_new_id: Option<u32>,
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
    /// The same with the base, if there is one.
    pub base_tokens_per_conformer: Option<f64>,
    /// What was learned from.
    pub learned_from: LearnedFrom,
    /// Measured on this corpus.
    pub corpus: CorpusReport,
    /// What was run before anything was written.
    pub guarantees: Promises,
    /// Other tokenizers beside it, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

impl LearnedReport {
    /// Adds what is known of the model: the rows of its embedding, and the rows made for the new tokens.
    pub fn for_model(&mut self, model_rows: Option<u64>, rows: Option<RowsReport>) {
        self.embedding = EmbeddingReport::of(self.embedding_rows, self.new_tokens, model_rows);
        self.rows = rows;
    }
}

/// The part of a corpus that was learned from: its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LearnedFrom {
    /// Conformers.
    pub conformers: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Conformers that came after and were only measured.
    pub left_out: u64,
}

/// What was run, all of it without a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Promises {
    /// Of an extended base.
    Extension(Guarantees),
    /// Of a tokenizer from nothing.
    Scratch(ScratchPromises),
}

/// What was run of a tokenizer from nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ScratchPromises {
    /// Tokens made by merges, each of which some text is encoded to.
    pub reached_tokens: u64,
    /// Spellings of one number, every one run in all three positions of a block.
    pub numbers: u64,
    /// Contexts that every one of them was run in.
    pub contexts: u64,
    /// Blocks encoded, each to the tokens that its pieces take alone.
    pub blocks: u64,
    /// Texts decoded to themselves: texts without blocks, and those of the corpus that were learned from.
    pub decoded_texts: u64,
}
