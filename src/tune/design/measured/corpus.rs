//! Measures a corpus with several tokenizers at once: the tokens of blocks and conformers, by size class.

use std::collections::HashSet;

use rayon::prelude::*;
use serde::Serialize;

use super::block_coverage::BlockCoverage;
use super::histogram::Histogram;
use super::sample::written_in;
use crate::design::scheme::grammar::Grammar;
use drift_core::job::{InputHash, Provenance};
use drift_core::text;
use drift_core::text::size::{SIZE_CLASSES, size_class};
use drift_core::tokenizer::Token;
use drift_core::{Encoding, Job, Result, Tokenizer};
use drift_data::corpus::{Conformer, Conformers};

/// Sums over conformers for one tokenizer.
#[derive(Debug, Clone, Copy)]
pub struct CorpusTally {
    /// The number of conformers.
    pub conformers: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// The number of blocks in the range.
    pub covered: u64,
    /// The number of tokens of whole texts, including their tags.
    pub tokens: u64,
    /// The number of tokens per block, for all blocks.
    pub all: Histogram,
    /// The number of tokens per block, for blocks in the range.
    pub inside: Histogram,
}

impl CorpusTally {
    const EMPTY: CorpusTally = CorpusTally {
        conformers: 0,
        blocks: 0,
        covered: 0,
        tokens: 0,
        all: Histogram::EMPTY,
        inside: Histogram::EMPTY,
    };

    fn add(&mut self, other: &CorpusTally) {
        self.conformers += other.conformers;
        self.blocks += other.blocks;
        self.covered += other.covered;
        self.tokens += other.tokens;
        self.all.add(&other.all);
        self.inside.add(&other.inside);
    }

    /// Returns the share of blocks in the range, 0 to 1.
    pub fn coverage(&self) -> f64 {
        self.covered as f64 / self.blocks.max(1) as f64
    }

    /// Returns the mean number of tokens of a text.
    pub fn tokens_per_conformer(&self) -> f64 {
        self.tokens as f64 / self.conformers.max(1) as f64
    }
}

/// The measurements of a corpus with several tokenizers.
pub(crate) struct CorpusMeasurement {
    /// One entry per tokenizer, each by size class.
    tallies: Vec<[CorpusTally; SIZE_CLASSES.len()]>,
    /// For each tokenizer, the ids that occur in some text.
    seen: Vec<HashSet<u32>>,
    /// The corpus's blocks by the grammars that include them.
    pub reach: BlockCoverage,
    /// The number of records that could not be read.
    skipped: u64,
    /// The hashes of the corpus's files.
    inputs: Vec<InputHash>,
}

impl CorpusMeasurement {
    /// Encodes every text in the grammar's encoding with every tokenizer.
    ///
    /// # Errors
    /// If a text cannot be encoded, the corpus cannot be read or is written in another encoding, or the job was cancelled.
    pub(crate) fn from_corpus(
        tokenizers: &[&Tokenizer],
        grammar: Grammar,
        corpus: &dyn Conformers,
        job: &Job,
    ) -> Result<Self> {
        let mut tallies = vec![[CorpusTally::EMPTY; SIZE_CLASSES.len()]; tokenizers.len()];
        let mut seen = vec![HashSet::new(); tokenizers.len()];
        let mut reach = BlockCoverage::from_grammar(grammar);
        let summary = corpus.read(job, &mut |batch| {
            for ((tokenizer, tallies), seen) in tokenizers.iter().zip(&mut tallies).zip(&mut seen) {
                job.check()?;
                let parts: Vec<(usize, CorpusTally, Vec<u32>)> = batch
                    .conformers
                    .par_iter()
                    .map(|conformer| measure(tokenizer, grammar, conformer))
                    .collect::<Result<_>>()?;
                for (class, part, ids) in parts {
                    tallies[class].add(&part);
                    seen.extend(ids);
                }
            }
            let blocks = batch.conformers.iter().flat_map(|conformer| &conformer.coordinates);
            blocks.for_each(|numbers| reach.add(numbers));
            Ok(())
        })?;
        // Known only after the last record, since any record may reveal the encoding.
        written_in(grammar.encoding(), summary.written)?;
        Ok(CorpusMeasurement { tallies, seen, reach, skipped: summary.skipped, inputs: summary.inputs })
    }

    /// Returns whether an id of a tokenizer occurs in some text.
    pub(crate) fn seen(&self, tokenizer: usize, id: u32) -> bool {
        self.seen[tokenizer].contains(&id)
    }

    /// Returns the sums over all size classes for one tokenizer.
    pub(crate) fn total(&self, tokenizer: usize) -> CorpusTally {
        let mut total = CorpusTally::EMPTY;
        self.tallies[tokenizer].iter().for_each(|tally| total.add(tally));
        total
    }

    /// Returns the program, the corpus, and a base if there is one.
    pub(crate) fn provenance(&self, base: Option<&Tokenizer>) -> Provenance {
        let base = base.map(|base| base.source.clone());
        Provenance::from_inputs(self.inputs.iter().cloned().chain(base).collect())
    }

    /// Returns the report for the first tokenizer, compared with the second one if there is one. Drift is measured from
    /// `tokens_per_block`.
    pub(crate) fn report(&self, tokens_per_block: u64) -> MeasuredCorpus {
        let (total, base) = (self.total(0), self.tallies.get(1));
        let by_size = (0..).zip(&self.tallies[0]).zip(SIZE_CLASSES);
        MeasuredCorpus {
            conformers: total.conformers,
            blocks: total.blocks,
            skipped: self.skipped,
            drift_tokens_per_block: total.all.off(tokens_per_block),
            by_size: by_size
                .filter(|((_, tally), _)| tally.conformers > 0)
                .map(|((index, tally), class): ((usize, _), _)| MeasuredSize {
                    from: class.from as u64,
                    to: class.to.map(|to| to as u64),
                    conformers: tally.conformers,
                    coverage: tally.coverage(),
                    tokens_per_conformer: tally.tokens_per_conformer(),
                    base_tokens_per_conformer: base.map(|base| base[index].tokens_per_conformer()),
                })
                .collect(),
        }
    }
}

/// The measured corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredCorpus {
    /// The number of conformers.
    pub conformers: u64,
    /// The number of blocks, one per heavy atom.
    pub blocks: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
    /// The mean absolute difference between the number of tokens of a block and `tokens_per_block`, over all blocks. It is 0 for
    /// blocks in the range.
    pub drift_tokens_per_block: f64,
    /// The measurements by number of heavy atoms.
    pub by_size: Vec<MeasuredSize>,
}

/// The measurements for conformers of one size class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredSize {
    /// The smallest number of heavy atoms.
    pub from: u64,
    /// The largest number of heavy atoms; `None` if there is no limit.
    pub to: Option<u64>,
    /// The number of conformers.
    pub conformers: u64,
    /// The share of their blocks that are in the range.
    pub coverage: f64,
    /// The mean number of tokens per conformer.
    pub tokens_per_conformer: f64,
    /// The mean number of tokens per conformer with the base, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_tokens_per_conformer: Option<f64>,
}

/// Returns the number of tokens of the slot at `block`, a range without the opening and closing characters. The tokens of these
/// characters are included; an encoding without them counts only tokens inside.
pub(crate) fn tokens_of_block(found: &[Token], block: &std::ops::Range<usize>, encoding: Encoding) -> u64 {
    let (opened, closed) = (!encoding.open().is_empty(), !encoding.close().is_empty());
    let before = |token: &Token| if opened { token.end < block.start } else { token.end <= block.start };
    let within = |token: &Token| if closed { token.start <= block.end } else { token.start < block.end };
    (found.partition_point(within) - found.partition_point(before)) as u64
}

/// Returns the size class, tally and token ids of a conformer.
fn measure(
    tokenizer: &Tokenizer,
    grammar: Grammar,
    conformer: &Conformer,
) -> Result<(usize, CorpusTally, Vec<u32>)> {
    let text = text::write(&conformer.skeleton, &conformer.coordinates, grammar.encoding());
    let text = text::tagged(&text);
    let found = tokenizer.tokens(&text)?;
    let mut tally = CorpusTally {
        conformers: 1,
        blocks: conformer.coordinates.len() as u64,
        tokens: found.len() as u64,
        ..CorpusTally::EMPTY
    };
    for (block, numbers) in grammar.encoding().slot_ranges(&text).iter().zip(&conformer.coordinates) {
        let tokens = tokens_of_block(&found, block, grammar.encoding()) as usize;
        tally.all.count(tokens);
        if numbers.iter().all(|number| grammar.holds(*number)) {
            tally.covered += 1;
            tally.inside.count(tokens);
        }
    }
    Ok((size_class(conformer.coordinates.len()), tally, found.iter().map(|token| token.id).collect()))
}
