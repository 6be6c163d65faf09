//! A corpus under several tokenizers at once: tokens of blocks and of conformers, by size class.

use std::collections::HashSet;

use rayon::prelude::*;
use serde::Serialize;

use super::front::Reach;
use super::grammar::Grammar;
use super::report::{CorpusReport, SizeReport};
use super::sample::written_in;
use crate::corpus::{Conformer, Conformers};
use crate::error::Result;
use crate::job::{InputHash, Job};
use crate::stats::size::{SIZE_CLASSES, size_class};
use crate::text;
use crate::tokenizer::Tokenizer;

/// Blocks of more tokens are counted as of this many; a block of the fixed dialect has at most 36 bytes.
const MOST: usize = 63;

/// Blocks by the number of tokens that touch them, brackets included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histogram([u64; MOST + 1]);

/// Tokens of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockTokens {
    /// Mean.
    pub mean: f64,
    /// Fewest.
    pub min: u64,
    /// Most.
    pub max: u64,
    /// What most blocks take.
    pub usual: u64,
    /// Share of blocks that take another number, 0 to 1.
    pub off_share: f64,
    /// Mean difference from `usual`, over all blocks.
    pub off_tokens_per_block: f64,
}

impl Histogram {
    /// Of no blocks.
    pub const EMPTY: Histogram = Histogram([0; MOST + 1]);

    /// Counts a block of `tokens` tokens.
    pub fn count(&mut self, tokens: usize) {
        self.0[tokens.min(MOST)] += 1;
    }

    /// Adds the blocks of another.
    pub fn add(&mut self, other: &Histogram) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }

    /// Numbers of tokens that occur, and their blocks.
    fn present(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        (0..).zip(self.0).collect::<Vec<_>>().into_iter().filter(|(_, blocks)| *blocks > 0)
    }

    /// Mean difference from `tokens`.
    pub fn off(&self, tokens: u64) -> f64 {
        let off: u64 = self.present().map(|(other, blocks)| other.abs_diff(tokens) * blocks).sum();
        off as f64 / self.blocks().max(1) as f64
    }

    /// The largest difference from `tokens`.
    pub fn worst(&self, tokens: u64) -> u64 {
        self.present().map(|(other, _)| other.abs_diff(tokens)).max().unwrap_or(0)
    }

    fn blocks(&self) -> u64 {
        self.0.iter().sum()
    }

    /// What the histogram says; of two equally usual numbers the smaller.
    pub fn tokens(&self) -> BlockTokens {
        let blocks = self.blocks().max(1) as f64;
        let usual = self.present().rev().max_by_key(|(_, blocks)| *blocks).map_or(0, |(tokens, _)| tokens);
        let sum: u64 = self.present().map(|(tokens, blocks)| tokens * blocks).sum();
        BlockTokens {
            mean: sum as f64 / blocks,
            min: self.present().next().map_or(0, |(tokens, _)| tokens),
            max: self.present().next_back().map_or(0, |(tokens, _)| tokens),
            usual,
            off_share: (self.blocks() - self.0[usual as usize]) as f64 / blocks,
            off_tokens_per_block: self.off(usual),
        }
    }
}

/// Sums over conformers under one tokenizer.
#[derive(Debug, Clone, Copy)]
pub struct Tally {
    /// Conformers.
    pub conformers: u64,
    /// Blocks.
    pub blocks: u64,
    /// Blocks in the range.
    pub covered: u64,
    /// Tokens of whole texts, with their tags.
    pub tokens: u64,
    /// Tokens of all blocks.
    pub all: Histogram,
    /// Tokens of blocks in the range.
    pub inside: Histogram,
}

impl Tally {
    const EMPTY: Tally = Tally {
        conformers: 0,
        blocks: 0,
        covered: 0,
        tokens: 0,
        all: Histogram::EMPTY,
        inside: Histogram::EMPTY,
    };

    fn add(&mut self, other: &Tally) {
        self.conformers += other.conformers;
        self.blocks += other.blocks;
        self.covered += other.covered;
        self.tokens += other.tokens;
        self.all.add(&other.all);
        self.inside.add(&other.inside);
    }

    /// Share of blocks in the range.
    pub fn coverage(&self) -> f64 {
        self.covered as f64 / self.blocks.max(1) as f64
    }

    /// Mean tokens of a text.
    pub fn tokens_per_conformer(&self) -> f64 {
        self.tokens as f64 / self.conformers.max(1) as f64
    }
}

/// See the module's documentation.
pub struct Measured {
    /// By tokenizer, then by size class.
    tallies: Vec<[Tally; SIZE_CLASSES.len()]>,
    /// By tokenizer, the ids that occur.
    seen: Vec<HashSet<u32>>,
    /// Its blocks by the ranges that they are in.
    pub reach: Reach,
    /// Records that could not be read.
    pub skipped: u64,
    /// Hashes of the corpus's files.
    pub inputs: Vec<InputHash>,
}

impl Measured {
    /// Encodes every text, in the grammar's dialect, with every tokenizer.
    ///
    /// # Errors
    /// If a text cannot be encoded, the corpus cannot be read or is written in another dialect, or the job was cancelled.
    pub fn of(
        tokenizers: &[&Tokenizer],
        grammar: Grammar,
        corpus: &dyn Conformers,
        job: &Job,
    ) -> Result<Self> {
        let mut tallies = vec![[Tally::EMPTY; SIZE_CLASSES.len()]; tokenizers.len()];
        let mut seen = vec![HashSet::new(); tokenizers.len()];
        let mut reach = Reach::default();
        let summary = corpus.read(job, &mut |batch| {
            for ((tokenizer, tallies), seen) in tokenizers.iter().zip(&mut tallies).zip(&mut seen) {
                job.check()?;
                let parts: Vec<(usize, Tally, Vec<u32>)> = batch
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
        written_in(grammar.dialect(), summary.written)?;
        Ok(Measured { tallies, seen, reach, skipped: summary.skipped, inputs: summary.inputs })
    }

    /// Whether an id of a tokenizer occurs in some text.
    pub fn seen(&self, tokenizer: usize, id: u32) -> bool {
        self.seen[tokenizer].contains(&id)
    }

    /// All sizes under one tokenizer.
    pub fn total(&self, tokenizer: usize) -> Tally {
        let mut total = Tally::EMPTY;
        self.tallies[tokenizer].iter().for_each(|tally| total.add(tally));
        total
    }

    /// The corpus under tokenizer `own`, with the tokens of `base` beside it; drift is counted from `tokens_per_block`.
    pub fn report(&self, own: usize, base: Option<usize>, tokens_per_block: u64) -> CorpusReport {
        let total = self.total(own);
        let by_size = (0..).zip(&self.tallies[own]).zip(SIZE_CLASSES);
        CorpusReport {
            conformers: total.conformers,
            blocks: total.blocks,
            skipped: self.skipped,
            drift_tokens_per_block: total.all.off(tokens_per_block),
            by_size: by_size
                .filter(|((_, tally), _)| tally.conformers > 0)
                .map(|((index, tally), class): ((usize, _), _)| SizeReport {
                    from: class.from as u64,
                    to: class.to.map(|to| to as u64),
                    conformers: tally.conformers,
                    coverage: tally.coverage(),
                    tokens_per_conformer: tally.tokens_per_conformer(),
                    base_tokens_per_conformer: base.map(|b| self.tallies[b][index].tokens_per_conformer()),
                })
                .collect(),
        }
    }
}

/// One conformer's size class, tally and ids.
fn measure(
    tokenizer: &Tokenizer,
    grammar: Grammar,
    conformer: &Conformer,
) -> Result<(usize, Tally, Vec<u32>)> {
    let text = text::write(&conformer.skeleton, &conformer.coordinates, grammar.dialect());
    let text = text::tagged(&text);
    let found = tokenizer.tokens(&text)?;
    let mut tally = Tally {
        conformers: 1,
        blocks: conformer.coordinates.len() as u64,
        tokens: found.len() as u64,
        ..Tally::EMPTY
    };
    for (block, numbers) in crate::tokenizer::block_ranges(&text).iter().zip(&conformer.coordinates) {
        let first = found.partition_point(|token| token.end < block.start);
        let after = found.partition_point(|token| token.start <= block.end);
        tally.all.count(after - first);
        if numbers.iter().all(|number| grammar.holds(*number)) {
            tally.covered += 1;
            tally.inside.count(after - first);
        }
    }
    Ok((size_class(conformer.coordinates.len()), tally, found.iter().map(|token| token.id).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_say_what_was_counted() {
        let mut histogram = Histogram::EMPTY;
        [22, 22, 23, 23, 25, 99].into_iter().for_each(|tokens| histogram.count(tokens));
        let tokens = histogram.tokens();
        assert_eq!((tokens.min, tokens.max, tokens.usual), (22, 63, 22));
        assert!((tokens.mean - 178.0 / 6.0).abs() < 1e-12 && (tokens.off_share - 4.0 / 6.0).abs() < 1e-12);
        assert_eq!((histogram.off(22), histogram.worst(23)), ((1.0 + 1.0 + 3.0 + 41.0) / 6.0, 40));
        assert_eq!(Histogram::EMPTY.tokens().usual, 0);
    }
}
