//! The report of tokenizers learned from a corpus: continued BPE, and BPE from scratch.

use serde::Serialize;

use super::comparison::MethodComparison;
use super::vocabulary::{SCHEMA, VocabularyReport};
use crate::design::extension::check::Guarantees;
use crate::design::learned::tokenizer::LearnedTokenizer;
use crate::design::measured::corpus::{CorpusMeasurement, MeasuredCorpus};
use crate::design::measured::histogram::BlockTokenStats;
use crate::design::measured::sample::LearningSample;
use crate::design::scheme::cuts::SchemeKind;
use crate::design::scheme::slots::Range;
use drift_core::job::Provenance;
use drift_core::{Encoding, Tokenizer};

/// The method by which a tokenizer was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearningMethod {
    /// Continued BPE on top of a base.
    Merges,
    /// BPE from scratch.
    VocabSize,
}

/// What `drift train-tokenizer` learned and proved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearnedReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program and its inputs.
    pub provenance: Provenance,
    /// The method.
    pub way: LearningMethod,
    /// The base's name, if there is one.
    pub base: Option<String>,
    /// Which tokens were allowed.
    pub kind: SchemeKind,
    /// The encoding whose blocks are cut by the scheme.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// Blocks of numbers below this magnitude, in Å, are cut by the scheme.
    pub range_angstrom: Range,
    /// The number of new tokens: those added to the base, or all tokens of the vocabulary.
    pub new_tokens: u64,
    /// The number of these tokens that are made by merges; the others are looked up as whole pieces.
    pub merges: u64,
    /// The number of tokens that would only have been intermediate steps, and were replaced.
    pub replaced: u64,
    /// The most frequent number of tokens of the corpus's blocks, from `<` to `>`.
    pub tokens_per_block: u64,
    /// The smallest number of tokens of any block in the range, found over all of them.
    pub fewest_tokens_per_block: u64,
    /// The largest number of tokens of any block in the range.
    pub most_tokens_per_block: u64,
    /// The largest difference between `tokens_per_block` and the number of tokens of any block in the range.
    pub drift: u64,
    /// The tokens per block of the corpus.
    pub blocks: BlockTokenStats,
    /// With fewer new tokens than this, some block of the range takes more than `most_tokens_per_block` tokens; see
    /// [`crate::design::scheme::counting_bound`].
    pub lower_bound: u64,
    /// `new_tokens` minus `lower_bound`.
    pub gap: u64,
    /// A block, with `|` at the cuts that precede merges.
    pub example: String,
    /// The consequences for a model and for texts.
    #[serde(flatten)]
    pub vocabulary: VocabularyReport,
    /// The part of the corpus that was learned from.
    pub learned_from: LearnedFrom,
    /// The measurements on this corpus.
    pub corpus: MeasuredCorpus,
    /// The checks that were run before anything was written.
    pub guarantees: Promises,
    /// Other tokenizers for comparison, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<MethodComparison>,
}

impl LearnedReport {
    /// Returns the report on a tokenizer that was learned on top of `base`, if there is one. `measured` is the corpus with this tokenizer
    /// and then its base, `sample` the part that was learned from.
    pub(in crate::design) fn new(
        kind: SchemeKind,
        base: Option<&Tokenizer>,
        made: &LearnedTokenizer,
        measured: &CorpusMeasurement,
        sample: &LearningSample,
        guarantees: Promises,
    ) -> Self {
        let (total, base_total) = (measured.total(0), base.map(|_| measured.total(1)));
        let blocks = total.inside.tokens();
        let (grammar, proved) = (made.scheme.grammar, made.proved);
        let new_tokens = made.new_tokens.len() as u64;
        LearnedReport {
            schema: SCHEMA,
            provenance: measured.provenance(base),
            way: if base.is_some() { LearningMethod::Merges } else { LearningMethod::VocabSize },
            base: base.map(|base| base.name.clone()),
            kind,
            encoding: grammar.encoding(),
            range_angstrom: grammar.range,
            new_tokens,
            merges: made.merges,
            replaced: made.replaced,
            tokens_per_block: blocks.usual,
            fewest_tokens_per_block: proved.fewest as u64,
            most_tokens_per_block: proved.most as u64,
            drift: proved.drift(blocks.usual),
            blocks: total.all.tokens(),
            lower_bound: proved.lower_bound,
            gap: new_tokens.saturating_sub(proved.lower_bound),
            example: made.scheme.example(grammar.decimals()),
            vocabulary: VocabularyReport::new(
                &made.tokenizer,
                &made.new_tokens,
                0,
                &total,
                base_total.as_ref(),
            ),
            learned_from: LearnedFrom {
                conformers: sample.conformers.len() as u64,
                blocks: sample.blocks,
                left_out: sample.left_out,
            },
            corpus: measured.report(blocks.usual),
            guarantees,
            comparison: None,
        }
    }
}

/// The part of a corpus that was learned from, which is its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LearnedFrom {
    /// The number of conformers.
    pub conformers: u64,
    /// The number of their blocks.
    pub blocks: u64,
    /// The number of later conformers, which were only measured.
    pub left_out: u64,
}

/// The checks that were run, all of them successful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Promises {
    /// The checks of an extended base.
    Extension(Guarantees),
    /// The checks of a tokenizer from scratch.
    Scratch(ScratchPromises),
}

/// The checks of a tokenizer from scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ScratchPromises {
    /// The number of tokens made by merges; each of them occurs in the encoding of some text.
    pub reached_tokens: u64,
    /// The number of spellings of one number. Each was tried in all three positions of a block.
    pub numbers: u64,
    /// The number of contexts in which every spelling was tried.
    pub contexts: u64,
    /// The number of blocks that were encoded, each to the tokens of its pieces on their own.
    pub blocks: u64,
    /// The number of texts that were decoded to themselves: texts without blocks, and the corpus's texts that were learned from.
    pub decoded_texts: u64,
}
