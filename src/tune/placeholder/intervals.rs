//! Confidence intervals of the effects of a placeholder, by molecule: blocks of one conformer are not independent of each other,
//! and neither are conformers of one molecule.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::classes::{SampleConformer, by_molecule};
use super::counts::{PICO, precision_of, rmsd_pico};
use super::replay::BlockReplay;
use drift_data::stats::interval::{ClusterSums, Interval, LEVEL, paired};

/// 95 % confidence intervals from a sample of the corpus; null if fewer than two molecules contribute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    /// The number of molecules in the sample.
    pub molecules: u64,
    /// The number of conformers in the sample.
    pub conformers: u64,
    /// The share of blocks of which fewer than three numbers are left.
    pub unparsable_blocks: Option<Interval>,
    /// The share of blocks that lose tokens.
    pub truncated_blocks: Option<Interval>,
    /// The number of junk slots per block.
    pub junk_tokens_per_block: Option<Interval>,
    /// The mean over molecules of the mean induced RMSD of their readable conformers, in Å.
    pub rmsd_angstrom: Option<Interval>,
}

impl Intervals {
    /// Returns the effect of `free` FREE tokens on a sample.
    pub(crate) fn from_sample(sample: &[SampleConformer], free: u8) -> Self {
        let count = |cost: fn(u8, &BlockReplay) -> u64| clusters(sample, |block| cost(free, block));
        let unparsable = count(|f, block| u64::from(block.error(f).is_none()));
        let truncated = count(|f, block| u64::from(f < block.tokens));
        let junk = count(|f, block| f.saturating_sub(block.tokens).into());
        Intervals {
            molecules: junk.clusters(),
            conformers: sample.len() as u64,
            // A share is between 0 and 1. Junk slots per block are a mean that may exceed 1, so their interval is not clamped.
            unparsable_blocks: unparsable.share_interval(LEVEL),
            truncated_blocks: truncated.share_interval(LEVEL),
            junk_tokens_per_block: junk.interval(LEVEL),
            rmsd_angstrom: rmsd(sample, free),
        }
    }
}

/// Returns the sums of a count over the blocks of each molecule.
fn clusters(sample: &[SampleConformer], count: impl Fn(&BlockReplay) -> u64) -> ClusterSums {
    let mut molecules: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for sampled in sample {
        let entry = molecules.entry(&sampled.molecule).or_default();
        entry.0 += sampled.blocks.iter().map(&count).sum::<u64>();
        entry.1 += sampled.blocks.len() as u64;
    }
    let mut sums = ClusterSums::default();
    // Cluster sums are signed because they also hold differences; a count of 2⁶³ does not occur.
    molecules.values().for_each(|(y, n)| sums.add(i64::try_from(*y).unwrap_or(i64::MAX), *n));
    sums
}

fn rmsd(sample: &[SampleConformer], free: u8) -> Option<Interval> {
    let readable = sample.iter().filter(|s| s.blocks.iter().all(|block| block.error(free).is_some()));
    let rmsds = readable.map(|SampleConformer { molecule, blocks, .. }| {
        let squares = blocks.iter().map(|block| block.squared_error(free)).fold(0, u64::saturating_add);
        let rmsd = rmsd_pico(squares, blocks.len(), precision_of(blocks.iter()));
        (molecule.clone(), rmsd as f64 / PICO)
    });
    let (molecules, rmsds): (Vec<Arc<str>>, Vec<f64>) = rmsds.unzip();
    // One value per molecule; `paired` treats them as differences from 0.
    paired(&by_molecule(&molecules, &rmsds), LEVEL).map(|mean| mean.interval)
}
