//! Sufficient statistics of replay: what a corpus says about every option, in memory that does not grow with it.

use serde::Serialize;

use super::objective::{Harm, Objective};
use super::options::Options;
use super::replay::BlockReplay;
use crate::tokenizer::MAX_BLOCK_TOKENS;

/// Counts by a number of tokens.
type ByTokens = [u64; MAX_BLOCK_TOKENS + 1];

/// RMSDs are summed as integers in units of 10⁻¹² Å, so that sums do not depend on their order.
const PICO: f64 = 1e12;

/// Statistics over conformers; merging is associative and commutative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Conformers replayed.
    pub conformers: u64,
    /// Blocks replayed.
    pub blocks: u64,
    /// Blocks by left group and T.
    tokens: Vec<ByTokens>,
    /// Blocks by left group and the smallest F that leaves three numbers.
    parsable_from: Vec<ByTokens>,
    /// By option.
    outcomes: Vec<Outcome>,
}

/// What conformers say about one option.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Outcome {
    unparsable_conformers: u64,
    rmsd_pico: u128,
}

/// What one option does to a corpus; shares are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measures {
    /// Share of blocks with junk slots (T < F).
    pub junk_blocks: f64,
    /// Junk slots per block.
    pub junk_tokens_per_block: f64,
    /// Share of blocks that lose tokens (T > F).
    pub truncated_blocks: f64,
    /// Share of blocks of which less than three numbers are left.
    pub unparsable_blocks: f64,
    /// Share of conformers with such a block.
    pub unparsable_conformers: f64,
    /// Mean induced RMSD over the other conformers, in Å; none if there is none.
    pub rmsd_angstrom: Option<f64>,
}

impl Measures {
    /// The harm of these measures. Without a parsable conformer u says it all; r is then 0.
    pub fn harm(&self, objective: &Objective) -> Harm {
        objective.harm(self.unparsable_blocks, self.rmsd_angstrom.unwrap_or(0.0), self.junk_tokens_per_block)
    }
}

impl Evidence {
    /// Nothing replayed yet.
    pub fn new(options: &Options) -> Self {
        let groups = options.group_count();
        Evidence {
            conformers: 0,
            blocks: 0,
            tokens: vec![[0; MAX_BLOCK_TOKENS + 1]; groups],
            parsable_from: vec![[0; MAX_BLOCK_TOKENS + 1]; groups],
            outcomes: vec![Outcome::default(); options.list.len()],
        }
    }

    /// Adds one conformer: its blocks, each with its left group.
    pub fn add(&mut self, options: &Options, blocks: &[(u8, BlockReplay)]) {
        let groups = self.tokens.len();
        let mut errors = vec![[0u64; MAX_BLOCK_TOKENS + 1]; groups];
        let mut parsable = vec![0u8; groups];
        let mut whole = vec![0u8; groups];
        for (group, block) in blocks {
            let group = usize::from(*group);
            self.tokens[group][usize::from(block.tokens)] += 1;
            self.parsable_from[group][usize::from(block.parsable_from)] += 1;
            parsable[group] = parsable[group].max(block.parsable_from);
            whole[group] = whole[group].max(block.tokens);
            for survive in block.parsable_from..block.tokens {
                let error = u64::from(block.errors[usize::from(survive - block.parsable_from)]);
                let sum = &mut errors[group][usize::from(survive)];
                *sum = sum.saturating_add(error.saturating_mul(error));
            }
        }
        self.conformers += 1;
        self.blocks += blocks.len() as u64;
        let atoms = blocks.len() as f64;
        for (option, outcome) in options.list.iter().zip(&mut self.outcomes) {
            let vector = option.vector.iter().map(|f| usize::from(*f)).enumerate();
            if vector.clone().any(|(group, f)| f < usize::from(parsable[group])) {
                outcome.unparsable_conformers += 1;
            } else if vector.clone().any(|(group, f)| f < usize::from(whole[group])) {
                let sum: u64 = vector.map(|(group, f)| errors[group][f]).fold(0, u64::saturating_add);
                outcome.rmsd_pico += (rmsd_angstrom(sum, atoms) * PICO).round() as u128;
            }
        }
    }

    /// Adds what another part of the corpus says.
    pub fn merge(&mut self, other: &Evidence) {
        self.conformers += other.conformers;
        self.blocks += other.blocks;
        for (mine, theirs) in self
            .tokens
            .iter_mut()
            .chain(&mut self.parsable_from)
            .zip(other.tokens.iter().chain(&other.parsable_from))
        {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        }
        for (mine, theirs) in self.outcomes.iter_mut().zip(&other.outcomes) {
            mine.unparsable_conformers += theirs.unparsable_conformers;
            mine.rmsd_pico += theirs.rmsd_pico;
        }
    }

    /// What an option does.
    pub fn measures(&self, options: &Options, option: usize) -> Measures {
        let vector = &options.list[option].vector;
        let (mut junk, mut junk_tokens, mut truncated, mut unparsable) = (0u64, 0u64, 0u64, 0u64);
        for ((tokens, parsable), &f) in self.tokens.iter().zip(&self.parsable_from).zip(vector) {
            let f = usize::from(f);
            for (t, &blocks) in tokens.iter().enumerate() {
                match t.cmp(&f) {
                    std::cmp::Ordering::Less => {
                        junk += blocks;
                        junk_tokens += blocks * (f - t) as u64;
                    }
                    std::cmp::Ordering::Equal => {}
                    std::cmp::Ordering::Greater => truncated += blocks,
                }
            }
            unparsable += parsable.iter().enumerate().filter(|(p, _)| *p > f).map(|(_, n)| n).sum::<u64>();
        }
        let outcome = self.outcomes[option];
        let parsable = self.conformers - outcome.unparsable_conformers;
        let share = |n: u64| n as f64 / self.blocks.max(1) as f64;
        Measures {
            junk_blocks: share(junk),
            junk_tokens_per_block: share(junk_tokens),
            truncated_blocks: share(truncated),
            unparsable_blocks: share(unparsable),
            unparsable_conformers: outcome.unparsable_conformers as f64 / self.conformers.max(1) as f64,
            rmsd_angstrom: (parsable > 0).then(|| outcome.rmsd_pico as f64 / PICO / parsable as f64),
        }
    }

    /// Blocks by T, over all left groups, from the first to the last T that occurs.
    pub fn distribution(&self) -> Vec<(u32, u64)> {
        let total = |t: usize| self.tokens.iter().map(|group| group[t]).sum::<u64>();
        let all: Vec<(u32, u64)> = (0..=MAX_BLOCK_TOKENS).map(|t| (t as u32, total(t))).collect();
        let first = all.iter().position(|(_, n)| *n > 0).unwrap_or(0);
        let last = all.iter().rposition(|(_, n)| *n > 0).unwrap_or(0);
        all[first..=last].to_vec()
    }

    /// The left group with the most blocks.
    pub fn main_group(&self) -> usize {
        let blocks = |group: &ByTokens| group.iter().sum::<u64>();
        (0..self.tokens.len()).rev().max_by_key(|&g| blocks(&self.tokens[g])).unwrap_or(0)
    }
}

/// RMSD = sqrt(Σ error² / atoms), from squared errors in (10⁻⁴ Å)².
pub fn rmsd_angstrom(squared_errors: u64, atoms: f64) -> f64 {
    (squared_errors as f64 / atoms).sqrt() * 1e-4
}
