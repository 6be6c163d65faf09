//! Counts from replaying a corpus, for every number of FREE tokens, in memory that does not grow with the corpus.

use std::cmp::Ordering;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::replay::BlockReplay;
use drift_core::encoding::Precision;
use drift_core::tokenizer::MAX_BLOCK_TOKENS;

/// The number of values that F can take: 0 to [`MAX_BLOCK_TOKENS`].
pub(super) const OPTIONS: usize = MAX_BLOCK_TOKENS + 1;

/// The smallest readable F of a block that no template leaves readable: larger than any F.
const NEVER: u8 = OPTIONS as u8;

/// A value for each number of tokens.
type ByTokens<T> = [T; OPTIONS];

/// RMSDs are summed as integers in units of 10⁻¹² Å, so that sums do not depend on their order.
pub(super) const PICO: f64 = 1e12;

/// The number of blocks by each of the two numbers that say what F does to a block, apart from the RMSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockHistogram {
    /// By T.
    tokens: ByTokens<u64>,
    /// By the smallest F that leaves three numbers.
    parsable_from: [u64; OPTIONS + 1],
}

impl BlockHistogram {
    pub(super) const EMPTY: Self = BlockHistogram { tokens: [0; OPTIONS], parsable_from: [0; OPTIONS + 1] };

    /// Adds one block.
    pub(super) fn add(&mut self, block: &BlockReplay) {
        self.tokens[usize::from(block.tokens)] += 1;
        self.parsable_from[usize::from(block.parsable_from)] += 1;
    }

    /// Adds the blocks of another part of the corpus.
    fn merge(&mut self, other: &BlockHistogram) {
        add_each(&mut self.tokens, &other.tokens);
        add_each(&mut self.parsable_from, &other.parsable_from);
    }

    /// Returns the number of blocks.
    fn blocks(&self) -> u64 {
        self.tokens.iter().sum()
    }

    /// Returns the effect of `free` FREE tokens in every block; what concerns whole conformers is left at 0.
    pub(super) fn damage(&self, free: usize) -> ReplayTotals {
        let mut damage = ReplayTotals {
            blocks: self.blocks(),
            // `parsable_from` is the smallest sufficient F, so blocks above `free` are unparsable.
            unparsable_blocks: self.parsable_from[free + 1..].iter().sum(),
            ..ReplayTotals::default()
        };
        for (tokens, &blocks) in self.tokens.iter().enumerate() {
            match tokens.cmp(&free) {
                Ordering::Less => {
                    damage.junk_blocks += blocks;
                    damage.junk_tokens += blocks * (free - tokens) as u64;
                }
                Ordering::Equal => {}
                Ordering::Greater => damage.truncated_blocks += blocks,
            }
        }
        damage
    }
}

/// Counts over conformers. Merging is associative and commutative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayCounts {
    /// The number of conformers that were replayed.
    pub conformers: u64,
    /// The blocks that were replayed.
    histogram: BlockHistogram,
    /// The number of conformers by the smallest F that leaves three numbers in each of their blocks.
    readable_from: [u64; OPTIONS + 1],
    /// For each F, the sum of the RMSDs of the conformers that are readable at F.
    rmsd_pico: ByTokens<u128>,
}

/// The effect of one number of FREE tokens, or of one per class of blocks, on a corpus: exact counts and sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayTotals {
    /// The number of conformers that were replayed.
    pub conformers: u64,
    /// The number of blocks that were replayed.
    pub blocks: u64,
    /// The number of blocks with junk slots (T < F).
    pub junk_blocks: u64,
    /// The number of junk slots.
    pub junk_tokens: u64,
    /// The number of blocks that lose tokens (T > F).
    pub truncated_blocks: u64,
    /// The number of blocks of which fewer than three numbers are left.
    pub unparsable_blocks: u64,
    /// The number of conformers with such a block.
    pub unparsable_conformers: u64,
    /// The sum of the induced RMSDs of the other conformers, in 10⁻¹² Å.
    pub rmsd_pico: u128,
}

/// The harm of a candidate as shares (0 to 1) and means, comparable between encodings and corpora of different sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// The share of blocks with junk slots (T < F).
    pub junk_blocks: f64,
    /// The number of junk slots per block.
    pub junk_tokens_per_block: f64,
    /// The share of blocks that lose tokens (T > F).
    pub truncated_blocks: f64,
    /// The share of blocks of which fewer than three numbers are left.
    pub unparsable_blocks: f64,
    /// The share of conformers with such a block.
    pub unparsable_conformers: f64,
    /// The mean induced RMSD over the other conformers, in Å; null if there are none.
    pub rmsd_angstrom: Option<f64>,
}

impl BlockReplay {
    /// This block as one that no template leaves readable, because a token joins one of its digits or signs with its bracket.
    pub(super) fn lost(self) -> Self {
        BlockReplay { parsable_from: NEVER, ..self }
    }
}

impl ReplayTotals {
    /// Returns the number of conformers without an unparsable block.
    pub(crate) fn readable_conformers(&self) -> u64 {
        self.conformers - self.unparsable_conformers
    }

    /// Returns the ratio of `count` to the number of blocks.
    pub fn share(&self, count: u64) -> f64 {
        // At least 1, so that without blocks the share is 0 rather than NaN, which JSON cannot represent.
        count as f64 / self.blocks.max(1) as f64
    }

    /// Returns the mean induced RMSD of readable conformers, in Å; `None` if there are none.
    pub fn rmsd_angstrom(&self) -> Option<f64> {
        let readable = self.readable_conformers();
        (readable > 0).then(|| self.rmsd_pico as f64 / PICO / readable as f64)
    }

    /// Compares mean RMSDs by cross-multiplication. Without a readable conformer, the mean counts as the largest.
    pub(crate) fn compare_rmsd(&self, other: &ReplayTotals) -> Ordering {
        let (mine, theirs) = (self.readable_conformers(), other.readable_conformers());
        match (mine, theirs) {
            // Cross-multiplying by 0 would make everything equal, so the side without a readable conformer is ordered last
            // explicitly.
            (0, _) | (_, 0) => theirs.cmp(&mine),
            _ => {
                let (a, b) = (self.rmsd_pico * u128::from(theirs), other.rmsd_pico * u128::from(mine));
                a.cmp(&b)
            }
        }
    }

    /// These totals as shares and means.
    pub fn measures(&self) -> Measures {
        Measures {
            junk_blocks: self.share(self.junk_blocks),
            junk_tokens_per_block: self.share(self.junk_tokens),
            truncated_blocks: self.share(self.truncated_blocks),
            unparsable_blocks: self.share(self.unparsable_blocks),
            unparsable_conformers: self.unparsable_conformers as f64 / self.conformers.max(1) as f64,
            rmsd_angstrom: self.rmsd_angstrom(),
        }
    }
}

impl Default for ReplayCounts {
    fn default() -> Self {
        ReplayCounts {
            conformers: 0,
            histogram: BlockHistogram::EMPTY,
            readable_from: [0; OPTIONS + 1],
            rmsd_pico: [0; OPTIONS],
        }
    }
}

impl ReplayCounts {
    /// Returns the number of blocks that were replayed.
    pub fn blocks(&self) -> u64 {
        self.histogram.blocks()
    }

    /// Adds one conformer.
    pub fn add(&mut self, blocks: &[BlockReplay]) {
        let (mut readable, mut whole) = (0usize, 0usize);
        let precision = precision_of(blocks.iter());
        // One sum for each F: within a conformer, squared errors are added before taking the root, so RMSDs of blocks could not be
        // added afterwards.
        let mut errors = [0u64; OPTIONS];
        for block in blocks {
            let (from, tokens) = (usize::from(block.parsable_from), usize::from(block.tokens));
            self.histogram.add(block);
            readable = readable.max(from);
            whole = whole.max(tokens);
            add_errors(&mut errors, block);
        }
        self.conformers += 1;
        self.readable_from[readable] += 1;
        // Below `readable` the conformer counts as unparsable, and from `whole` on nothing is lost, so there is an RMSD only in
        // between. A lost block has `parsable_from` above every T, which leaves nothing in between.
        let whole = whole.max(readable);
        for (sum, errors) in self.rmsd_pico[readable..whole].iter_mut().zip(&errors[readable..whole]) {
            *sum += rmsd_pico(*errors, blocks.len(), precision);
        }
    }

    /// Returns the effect of a template that forces a digit or a sign: all blocks count as lost.
    pub(crate) fn all_lost(&self) -> ReplayTotals {
        ReplayTotals {
            conformers: self.conformers,
            blocks: self.blocks(),
            unparsable_blocks: self.blocks(),
            unparsable_conformers: self.conformers,
            ..ReplayTotals::default()
        }
    }

    /// Adds the counts of another part of the corpus.
    pub fn merge(&mut self, other: &ReplayCounts) {
        self.conformers += other.conformers;
        self.histogram.merge(&other.histogram);
        add_each(&mut self.readable_from, &other.readable_from);
        add_each(&mut self.rmsd_pico, &other.rmsd_pico);
    }

    /// Returns the effect of `free` FREE tokens in every block.
    pub fn damage(&self, free: u8) -> ReplayTotals {
        let free = usize::from(free);
        ReplayTotals {
            conformers: self.conformers,
            unparsable_conformers: self.readable_from[free + 1..].iter().sum(),
            rmsd_pico: self.rmsd_pico[free],
            ..self.histogram.damage(free)
        }
    }

    /// Returns the number of blocks by T, from the smallest to the largest T that occurs.
    pub fn distribution(&self) -> Vec<(u32, u64)> {
        let tokens = &self.histogram.tokens;
        let first = tokens.iter().position(|n| *n > 0).unwrap_or(0);
        let last = tokens.iter().rposition(|n| *n > 0).unwrap_or(0);
        (first..=last).map(|t| (t as u32, tokens[t])).collect()
    }
}

/// Adds to each number its counterpart of `other`.
fn add_each<N: Copy + AddAssign>(sums: &mut [N], other: &[N]) {
    sums.iter_mut().zip(other).for_each(|(sum, n)| *sum += *n);
}

/// Returns the precision of a conformer's blocks, which is the same for all of them.
pub(super) fn precision_of<'b>(mut blocks: impl Iterator<Item = &'b BlockReplay>) -> Precision {
    blocks.next().map_or(Precision::FOUR, |block| block.precision)
}

/// Adds the squared errors of a block for every F that cuts the block and leaves it readable, in squares of units.
pub(super) fn add_errors(errors: &mut [u64; OPTIONS], block: &BlockReplay) {
    for free in block.parsable_from..block.tokens {
        let sum = &mut errors[usize::from(free)];
        *sum = sum.saturating_add(block.squared_error(free));
    }
}

/// RMSD = sqrt(Σ error² / atoms) in 10⁻¹² Å, rounded; squared errors in squares of the last decimal.
pub(super) fn rmsd_pico(squared_errors: u64, atoms: usize, precision: Precision) -> u128 {
    // Most conformers lose nothing.
    if squared_errors == 0 {
        return 0;
    }
    let unit_angstrom = 1.0 / f64::from(precision.units_per_angstrom());
    rounded((squared_errors as f64 / atoms as f64).sqrt() * unit_angstrom * PICO)
}

/// Returns the integer nearest to a finite number of at least 0; of two, the larger.
fn rounded(x: f64) -> u128 {
    // Without SSE4.1, `round` and the conversion to u128 are calls of functions, which take longer than the rest of an RMSD. Where
    // the conversion to u64 does not saturate, the difference is exact.
    let whole = x as u64;
    match whole {
        u64::MAX => x.round() as u128,
        _ => u128::from(whole) + u128::from(x - whole as f64 >= 0.5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn numbers_are_rounded_as_the_standard_library_rounds() {
        let check = |x: f64| assert_eq!(rounded(x), x.round() as u128, "{x:e}");
        let mut draw = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..20_000 {
            // Of every size, from far below 1 to beyond u64.
            let x = (1.0 + draw.random::<f64>()) * 2f64.powi(draw.random_range(-60..100));
            let tie = x.floor() + 0.5;
            [x, tie, tie.next_down(), tie.next_up()].into_iter().for_each(check);
        }
        let end = u64::MAX as f64;
        [0.0, 0.5f64.next_down(), 0.5, 1.5, 4503599627370495.5, end.next_down(), end, end.next_up()]
            .into_iter()
            .for_each(check);
    }
}
