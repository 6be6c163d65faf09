//! Mining in shards: a store for each part of the files. Read one after another, the stores give what a single process would have
//! read.

use super::{MinePlan, Store};
use crate::corpus::{BatchSink, Conformers, Listing, ReadOptions, ReadSummary};
use crate::shard::files::{FilesDone, FilesShard, FilesSummary, MergedFiles, check_part};
use drift_core::encoding::Reading;
use drift_core::{Job, Result};

/// Reads the files of a shard into stores. Statistics are computed when shards are merged.
///
/// # Errors
/// The errors of [`mine`](super::mine()).
pub fn mine_shard(plan: &MinePlan, shard: &mut FilesShard, job: &Job) -> Result<FilesDone> {
    let options = &plan.options;
    shard.run("h5", job, &mut |listing, files, path| {
        let mut store = Store::create(path, options.reading.encoding)?;
        let summary = listing.read(files, options, job, &mut |batch| store.push(&batch.conformers))?;
        let file = store.finish(summary.inputs.clone(), summary.skipped)?;
        Ok((FilesSummary::new(summary, options), file))
    })
}

/// The stores of all shards, as a source of conformers.
#[derive(Debug)]
pub struct StoredParts {
    /// The stores, in order.
    pub parts: MergedFiles,
    /// The decimals with which they were made.
    pub reading: Reading,
}

impl Conformers for StoredParts {
    fn read(&self, job: &Job, emit: &mut BatchSink<'_>) -> Result<ReadSummary> {
        let options = ReadOptions { reading: self.reading, ..ReadOptions::default() };
        for (path, part) in &self.parts.parts {
            // The reader refuses a store without conformers.
            if part.came.summary.conformers > 0 {
                let listing = Listing::from_inputs(std::slice::from_ref(path))?;
                let read = listing.read(0..1, &options, job, emit)?;
                read.inputs.iter().try_for_each(|found| check_part(path, found, part))?;
            }
        }
        self.parts.read_summary()
    }

    fn reading(&self) -> Reading {
        self.reading
    }
}
