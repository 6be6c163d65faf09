//! The report of tokenizers that are learned from a corpus: continued BPE, and BPE from nothing.

use serde::Serialize;

use super::comparison::MethodComparison;
use super::vocabulary::VocabularyReport;
use crate::design::extension::check::Guarantees;
use crate::design::measured::corpus::MeasuredCorpus;
use crate::design::measured::histogram::BlockTokenStats;
use crate::design::measured::sample::LearningSample;
use crate::design::scheme::cuts::SchemeKind;
use crate::design::scheme::slots::Range;
use drift_core::encoding::Encoding;
use drift_core::job::Provenance;

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
    /// [`super::designed::SCHEMA`].
    pub schema: &'static str,
    /// What made it, from what.
    pub provenance: Provenance,
    /// How it was learned.
    pub way: Way,
    /// The base's name, if there is one.
    pub base: Option<String>,
    /// Which tokens were allowed.
    pub kind: SchemeKind,
    /// The dialect whose blocks are cut by the scheme.
    pub dialect: Encoding,
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
    pub blocks: BlockTokenStats,
    /// Under fewer new tokens than this, some block of the range takes more than `most_tokens_per_block`; see
    /// [`crate::design::scheme::counting_bound`].
    pub lower_bound: u64,
    /// `new_tokens` less `lower_bound`.
    pub gap: u64,
    /// A block, with `|` where it is cut before merges.
    pub example: String,
    /// What it means for a model and for texts.
    #[serde(flatten)]
    pub vocabulary: VocabularyReport,
    /// What was learned from.
    pub learned_from: LearnedFrom,
    /// Measured on this corpus.
    pub corpus: MeasuredCorpus,
    /// What was run before anything was written.
    pub guarantees: Promises,
    /// Other tokenizers beside it, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<MethodComparison>,
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

impl LearnedFrom {
    /// How much a sample holds.
    pub fn new(sample: &LearningSample) -> Self {
        let conformers = sample.conformers.len() as u64;
        LearnedFrom { conformers, blocks: sample.blocks, left_out: sample.left_out }
    }
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
