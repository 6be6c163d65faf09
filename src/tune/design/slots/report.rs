//! The report on an extension for the numbers of a skeleton.

use serde::Serialize;

use crate::design::extension::plain::PlainText;
use crate::design::report::vocabulary::EmbeddingReport;
use crate::design::rows::initial::RowsReport;
use drift_core::job::Provenance;

/// The schema of [`SlotReport`].
pub const SLOTS_SCHEMA: &str = "drift.train-slots/1";

/// An extension for the numbers of a skeleton.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlotReport {
    /// [`SLOTS_SCHEMA`].
    pub schema: &'static str,
    /// drift's version, and the inputs by name and hash.
    pub provenance: Provenance,
    /// The name of the base.
    pub base: String,
    /// The name of the skeleton.
    pub skeleton: String,
    /// The tokens of every number, white space before it included.
    pub tokens_per_slot: u64,
    /// The number of new tokens.
    pub new_tokens: u64,
    /// The first new id.
    pub first_new_id: Option<u32>,
    /// The number of rows that an embedding needs: the largest id plus one.
    pub embedding_rows: u64,
    /// Whether the new ids fit into a model's spare rows.
    pub embedding: EmbeddingReport,
    /// The initial rows that were computed for the new tokens; null without a model.
    pub rows: Option<RowsReport>,
    /// How each slot is cut.
    pub slots: Vec<SlotCut>,
    /// What the texts of each prompt take.
    pub prompts: Vec<PromptCounts>,
    /// The number of prompts all of whose texts take equally many tokens.
    pub constant: u64,
    /// What was checked.
    pub guarantees: SlotGuarantees,
}

/// How the numbers of a slot are cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlotCut {
    /// The slot.
    pub slot: String,
    /// The number of decimals.
    pub decimals: u64,
    /// A number with `|` where it is cut.
    pub example: String,
}

/// The least and the largest number of tokens of all texts of a prompt; null if they are too many to count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptCounts {
    /// Where the prompt stands.
    pub prompt: String,
    /// With the extension.
    pub tokens: Option<[u32; 2]>,
    /// With the base.
    pub base_tokens: Option<[u32; 2]>,
}

/// The checks that were run, all of them successful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlotGuarantees {
    /// The number of tokens of the base whose id and text are unchanged.
    pub unchanged_tokens: u64,
    /// The number of new tokens; each of them occurs in some number.
    pub reached_tokens: u64,
    /// The number of texts with a number in one of its places, every number in every place; each took exactly its pieces, and was decoded to itself.
    pub numbers: u64,
    /// The number of texts with something like a number, and without any; all were encoded as by the base.
    pub plain_texts: u64,
    /// The total size of the texts without any number in bytes.
    pub plain_bytes: u64,
    /// Whether equality on all texts without numbers is proved, or only tested.
    pub plain_text: PlainText,
}
