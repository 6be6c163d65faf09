//! A corpus under the base and under what was made of it.

use rayon::prelude::*;

use super::front::{Reach, TokenizerPoint};
use super::report::{CorpusReport, SizeReport};
use super::scheme::Scheme;
use super::train::Plan;
use crate::corpus::{Conformer, Conformers};
use crate::error::{Error, Result};
use crate::job::{InputHash, Job};
use crate::stats::size::{SIZE_CLASSES, size_class};
use crate::text::{self, Dialect};
use crate::tokenizer::{Token, Tokenizer};

/// Sums over conformers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    conformers: u64,
    blocks: u64,
    covered: u64,
    /// Tokens of their texts under the result.
    pub tokens: u64,
    /// The same under the base.
    pub base_tokens: u64,
    /// Tokens more or fewer than the scheme's, over all blocks.
    drift: u64,
    /// The most of them in one block of the range.
    pub worst: u64,
    /// Blocks of the range under the base.
    pub base_blocks: BlockSums,
    /// The same under the result.
    pub blocks_after: BlockSums,
}

/// Tokens of blocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockSums {
    blocks: u64,
    tokens: u64,
    fewest: u64,
    most: u64,
}

impl BlockSums {
    fn add(&mut self, other: &BlockSums) {
        if other.blocks == 0 {
            return;
        }
        self.fewest = if self.blocks == 0 { other.fewest } else { self.fewest.min(other.fewest) };
        self.most = self.most.max(other.most);
        self.blocks += other.blocks;
        self.tokens += other.tokens;
    }

    fn block(&mut self, tokens: u64) {
        self.add(&BlockSums { blocks: 1, tokens, fewest: tokens, most: tokens });
    }

    /// As a point beside designs.
    pub fn point(&self, name: &str, new_tokens: u64) -> TokenizerPoint {
        TokenizerPoint {
            name: name.to_owned(),
            new_tokens,
            tokens_per_block: self.tokens as f64 / self.blocks.max(1) as f64,
            drift: self.most - self.fewest,
        }
    }
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.conformers += other.conformers;
        self.blocks += other.blocks;
        self.covered += other.covered;
        self.tokens += other.tokens;
        self.base_tokens += other.base_tokens;
        self.drift += other.drift;
        self.worst = self.worst.max(other.worst);
        self.base_blocks.add(&other.base_blocks);
        self.blocks_after.add(&other.blocks_after);
    }

    /// Share of the blocks in the range.
    pub fn coverage(&self) -> f64 {
        self.covered as f64 / self.blocks.max(1) as f64
    }

    /// A sum over conformers as a mean.
    pub fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.conformers.max(1) as f64
    }
}

/// A corpus under both tokenizers, by size class.
pub struct Measured {
    sizes: [Sums; SIZE_CLASSES.len()],
    skipped: u64,
    /// Its blocks by the ranges that they are in.
    pub reach: Reach,
    /// The files that it was read from.
    pub summary_inputs: Vec<InputHash>,
}

impl Measured {
    /// Reads the corpus, and encodes it with both tokenizers.
    ///
    /// # Errors
    /// If it cannot be read, is written in another dialect, or the job was cancelled.
    pub fn of(
        plan: &Plan,
        extended: &Tokenizer,
        scheme: &Scheme,
        corpus: &dyn Conformers,
        job: &Job,
    ) -> Result<Self> {
        let mut sizes = [Sums::default(); SIZE_CLASSES.len()];
        let mut reach = Reach::default();
        let summary = corpus.read(job, &mut |batch| {
            let parts: Vec<(usize, Sums)> = batch
                .conformers
                .par_iter()
                .map(|conformer| measure(plan, extended, scheme, conformer))
                .collect::<Result<_>>()?;
            parts.iter().for_each(|(class, sums)| sizes[*class].add(sums));
            let blocks = batch.conformers.iter().flat_map(|conformer| &conformer.coordinates);
            blocks.for_each(|numbers| reach.add(numbers));
            Ok(())
        })?;
        let written = summary.written;
        let (other, remedy) = match plan.dialect {
            Dialect::Fixed => (written.stripped && !written.fixed, "give a corpus in the fixed dialect"),
            Dialect::Stripped => {
                (written.fixed && !written.stripped, "give a corpus in the stripped dialect")
            }
        };
        if other {
            let other = Dialect::ALL.map(Dialect::name)[usize::from(plan.dialect == Dialect::Fixed)];
            let problem = format!(
                "is written in the {other} dialect; blocks of the {} dialect are what changes",
                plan.dialect.name()
            );
            return Err(Error::input("--corpus", problem, format!("{remedy}, or --dialect {other}")));
        }
        Ok(Measured { sizes, reach, skipped: summary.skipped, summary_inputs: summary.inputs })
    }

    /// Sums over all sizes.
    pub fn total(&self) -> Sums {
        let mut total = Sums::default();
        self.sizes.iter().for_each(|sums| total.add(sums));
        total
    }

    /// What the report says.
    pub fn report(&self) -> CorpusReport {
        let total = self.total();
        CorpusReport {
            conformers: total.conformers,
            blocks: total.blocks,
            skipped: self.skipped,
            drift_tokens_per_block: total.drift as f64 / total.blocks.max(1) as f64,
            by_size: (self.sizes.iter().zip(SIZE_CLASSES))
                .filter(|(sums, _)| sums.conformers > 0)
                .map(|(sums, class)| SizeReport {
                    from: class.from as u64,
                    to: class.to.map(|to| to as u64),
                    conformers: sums.conformers,
                    coverage: sums.coverage(),
                    tokens_per_conformer: sums.mean(sums.tokens),
                    base_tokens_per_conformer: sums.mean(sums.base_tokens),
                })
                .collect(),
        }
    }
}

/// One conformer's size class and sums.
fn measure(
    plan: &Plan,
    extended: &Tokenizer,
    scheme: &Scheme,
    conformer: &Conformer,
) -> Result<(usize, Sums)> {
    let tokens = scheme.tokens_per_block();
    let text = text::tagged(&text::write(&conformer.skeleton, &conformer.coordinates, plan.dialect));
    let (found, base_found) = (extended.tokens(&text)?, plan.base.tokens(&text)?);
    let mut sums = Sums {
        conformers: 1,
        blocks: conformer.coordinates.len() as u64,
        tokens: found.len() as u64,
        base_tokens: base_found.len() as u64,
        ..Sums::default()
    };
    for (range, numbers) in crate::tokenizer::block_ranges(&text).iter().zip(&conformer.coordinates) {
        let touching = |tokens: &[Token]| {
            tokens.iter().filter(|t| t.end > range.start - 1 && t.start < range.end + 1).count()
        };
        let after = touching(&found);
        let drift = after.abs_diff(tokens) as u64;
        sums.drift += drift;
        if numbers.iter().all(|number| scheme.grammar.holds(*number)) {
            sums.covered += 1;
            sums.worst = sums.worst.max(drift);
            sums.blocks_after.block(after as u64);
            sums.base_blocks.block(touching(&base_found) as u64);
        }
    }
    Ok((size_class(conformer.coordinates.len()), sums))
}
