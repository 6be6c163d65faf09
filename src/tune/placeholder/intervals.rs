//! Confidence intervals of what a placeholder does, by molecule: blocks of one conformer are not independent of each
//! other, nor are conformers of one molecule.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::classes::{Sampled, by_molecule};
use super::counts::{PICO, precision_of, rmsd_pico};
use super::replay::BlockReplay;
use drift_data::stats::interval::{ClusterSums, Interval, LEVEL, paired};

/// 95 % intervals from a sample of the corpus; none where fewer than two molecules say anything.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    /// Molecules of the sample.
    pub molecules: u64,
    /// Conformers of the sample.
    pub conformers: u64,
    /// Share of blocks of which less than three numbers are left.
    pub unparsable_blocks: Option<Interval>,
    /// Share of blocks that lose tokens.
    pub truncated_blocks: Option<Interval>,
    /// Junk slots per block.
    pub junk_tokens_per_block: Option<Interval>,
    /// Mean over molecules of the mean induced RMSD of their readable conformers, Å.
    pub rmsd_angstrom: Option<Interval>,
}

impl Intervals {
    /// What `free` FREE tokens do to a sample.
    pub fn from_sample(sample: &[Sampled], free: u8) -> Self {
        let count = |cost: fn(u8, &BlockReplay) -> u64| clusters(sample, |block| cost(free, block));
        let unparsable = count(|f, block| u64::from(block.error(f).is_none()));
        let truncated = count(|f, block| u64::from(f < block.tokens));
        let junk = count(|f, block| f.saturating_sub(block.tokens).into());
        Intervals {
            molecules: junk.clusters(),
            conformers: sample.len() as u64,
            // A share stays between 0 and 1; junk slots per block are a mean and may pass 1, so their interval is not cut.
            unparsable_blocks: unparsable.share_interval(LEVEL),
            truncated_blocks: truncated.share_interval(LEVEL),
            junk_tokens_per_block: junk.interval(LEVEL),
            rmsd_angstrom: rmsd(sample, free),
        }
    }
}

/// Sums of a count over the blocks of each molecule.
fn clusters(sample: &[Sampled], count: impl Fn(&BlockReplay) -> u64) -> ClusterSums {
    let mut molecules: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for sampled in sample {
        let entry = molecules.entry(&sampled.molecule).or_default();
        entry.0 += sampled.blocks.iter().map(&count).sum::<u64>();
        entry.1 += sampled.blocks.len() as u64;
    }
    let mut sums = ClusterSums::default();
    // Clusters are signed, since they also hold differences; a count of 2⁶³ does not occur.
    molecules.values().for_each(|(y, n)| sums.add(i64::try_from(*y).unwrap_or(i64::MAX), *n));
    sums
}

fn rmsd(sample: &[Sampled], free: u8) -> Option<Interval> {
    let readable = sample.iter().filter(|s| s.blocks.iter().all(|block| block.error(free).is_some()));
    let (molecules, rmsds): (Vec<Arc<str>>, Vec<f64>) = readable
        .map(|sampled| {
            let squares = sampled.blocks.iter().map(|b| b.squared_error(free)).fold(0, u64::saturating_add);
            (
                sampled.molecule.clone(),
                rmsd_pico(squares, sampled.blocks.len(), precision_of(sampled.blocks.iter())) as f64 / PICO,
            )
        })
        .unzip();
    // One value for each molecule; `paired` takes them as differences from 0.
    paired(&by_molecule(&molecules, &rmsds), LEVEL).map(|mean| mean.interval)
}
