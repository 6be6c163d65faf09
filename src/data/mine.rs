//! Mining: reads conformers, and produces statistics and, if requested, a store.

mod shard;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

#[cfg(feature = "hdf5")]
use crate::corpus::store::StoreWriter as Store;
use crate::corpus::{Batch, Conformer, Conformers, Files, ReadOptions, ReadSummary, SkippedRecord};
use crate::flaws::{DUPLICATE_ANGSTROM, FlawReport, FlawTotals, JudgePass, KeyPass, listed};
use crate::parameter;
use crate::stats::{CoordinateStats, FaultReport, FaultStats, StatsReport, TextReport, TextStats};
use drift_core::io::AtomicFile;
use drift_core::job::Provenance;
use drift_core::{Encoding, Error, Job, Result};
pub use shard::{StoredParts, mine_shard};

/// What to read and how, and where to store it.
#[derive(Debug, Clone, Default)]
pub struct MinePlan {
    /// The input files and folders.
    pub inputs: Vec<PathBuf>,
    /// How the files are read.
    pub options: ReadOptions,
    /// The path of the HDF5 store to write; `None` if only statistics are wanted.
    pub store: Option<PathBuf>,
}

/// The result of mining.
#[derive(Debug, Serialize)]
pub struct MineReport {
    /// How coordinates are written.
    pub encoding: Encoding,
    /// The number of coordinates whose text only says that they are outside the encoding's range.
    pub out_of_range: u64,
    /// The number of conformers with at least one such coordinate.
    pub out_of_range_conformers: u64,
    /// The statistics of coordinates, in Å.
    #[serde(flatten)]
    pub stats: StatsReport,
    /// The comparison of texts with their SMILES.
    pub texts: TextReport,
    /// Conformers whose geometry cannot be right.
    pub faults: FaultReport,
    /// What may not belong in a training set, if this was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<FlawReport>,
    /// Whether it was merged from shards of which some work is missing; the figures are then for the rest.
    pub interrupted: bool,
    /// The number of rows that were not asked for.
    pub left_out: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
    /// The first of the skipped records.
    pub skipped_records: Vec<SkippedRecord>,
    /// The number of conformers whose atoms are in file order, not in the order of a SMILES.
    pub in_file_order: u64,
    /// The first of these conformers, with the reasons.
    pub in_file_order_records: Vec<SkippedRecord>,
    /// drift's version, and the inputs by name and hash.
    pub provenance: Provenance,
}

/// The number of conformers that one task counts.
const CHUNK: usize = 512;

/// Reads, counts and stores conformers in one pass. Memory does not grow with the number of conformers.
///
/// # Errors
/// The errors of [`corpus::read`](crate::corpus::read()), or if the store cannot be written, or if this drift was built without
/// HDF5 and a store is requested. No store is left then.
pub fn mine(plan: &MinePlan, job: &Job) -> Result<MineReport> {
    let files = Files { inputs: plan.inputs.clone(), options: plan.options.clone() };
    let (report, store) = mine_of(&files, plan.store.as_deref(), None, job)?;
    store.map_or(Ok(()), AtomicFile::commit)?;
    Ok(report)
}

/// Receives the lines of a list, in order.
pub type PutFlaws<'p> = dyn FnMut(&[u8]) -> Result<()> + 'p;

/// Reads, counts and stores the conformers of any source like [`mine`], but returns the complete store before it gets its name, for
/// callers who write other files together with it.
///
/// With a list it also checks the corpus ([`flaws`](crate::flaws)): it is read a second time, and a line for each flaw goes to `list`.
/// The source must then give the columns of [`flaws::COLUMNS`](crate::flaws::COLUMNS).
///
/// # Errors
/// The errors of [`mine`]; with a list also if the source can be read only once, has changed when it is read again, or has more than
/// 2³² conformers, and those of `list`.
pub fn mine_of(
    source: &dyn Conformers,
    store: Option<&Path>,
    list: Option<&mut PutFlaws<'_>>,
    job: &Job,
) -> Result<(MineReport, Option<AtomicFile>)> {
    let encoding = source.reading().encoding;
    if list.is_some() && source.can_be_read_again().is_err() {
        return Err(read_twice());
    }
    let mut keys = list.is_some().then(|| KeyPass::new(encoding, DUPLICATE_ANGSTROM, &[]));
    let mut store = store.map(|path| Store::create(path, encoding)).transpose()?;
    let mut counts = Counts::new(encoding);
    let summary = source.read(job, &mut |batch| {
        counts.add(&batch.conformers);
        keys.as_mut().map_or(Ok(()), |keys| keys.add(&batch.conformers, |_| false))?;
        store.as_mut().map_or(Ok(()), |store| store.push(&batch.conformers))
    })?;
    let check = match (keys, list) {
        (Some(keys), Some(list)) => Some(checked(source, &summary, keys.finish(), list, job)?),
        _ => None,
    };
    let store = store.map(|store| store.finish(summary.inputs.clone(), summary.skipped)).transpose()?;
    Ok((counts.report(summary, check), store))
}

/// Returns the refusal of a source that can be read only once.
pub(crate) fn read_twice() -> Error {
    let problem = "reads its input twice, and a pipe can be read once";
    Error::parameter(parameter::CHECK, problem, "write it to a file first")
}

/// Reads a source once more, and judges its conformers.
fn checked(
    source: &dyn Conformers,
    before: &ReadSummary,
    mut pass: JudgePass,
    list: &mut PutFlaws<'_>,
    job: &Job,
) -> Result<FlawReport> {
    let (encoding, mut totals) = (source.reading().encoding, FlawTotals::default());
    let again = source.read(job, &mut |batch: Batch| {
        let rows = pass.judge(&batch);
        totals.add(&batch, &rows, encoding);
        list(&listed(&batch, &rows)?)
    })?;
    again.refuse_if_changed(before)?;
    Ok(totals.report(DUPLICATE_ANGSTROM))
}

/// The counts of mining.
struct Counts {
    encoding: Encoding,
    coordinates: CoordinateStats,
    texts: TextStats,
    faults: FaultStats,
    /// The number of conformers so far.
    conformers: u64,
}

impl Counts {
    fn new(encoding: Encoding) -> Self {
        Counts {
            encoding,
            coordinates: CoordinateStats::new(encoding),
            texts: TextStats::default(),
            faults: FaultStats::default(),
            conformers: 0,
        }
    }

    /// Counts conformers on all threads.
    fn add(&mut self, conformers: &[Conformer]) {
        let first = self.conformers + 1;
        // Counts are integers, so any merge order gives the same result. Collecting the parts keeps the order fixed nevertheless.
        let parts: Vec<Counts> = conformers
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, conformers)| {
                let mut part = Counts::new(self.encoding);
                for (number, conformer) in (first + (chunk * CHUNK) as u64..).zip(conformers) {
                    part.coordinates.add(conformer);
                    part.texts.add(conformer);
                    part.faults.add(conformer, number, self.encoding);
                }
                part
            })
            .collect();
        for part in &parts {
            self.coordinates.merge(&part.coordinates);
            self.texts.merge(&part.texts);
            self.faults.merge(&part.faults);
        }
        self.conformers += conformers.len() as u64;
    }

    fn report(self, summary: ReadSummary, check: Option<FlawReport>) -> MineReport {
        MineReport {
            encoding: self.encoding,
            out_of_range: self.coordinates.out_of_range(),
            out_of_range_conformers: summary.out_of_range,
            stats: self.coordinates.report(),
            texts: self.texts.report(),
            faults: self.faults.report(),
            check,
            interrupted: summary.is_partial,
            left_out: summary.left_out,
            skipped: summary.skipped,
            skipped_records: summary.skipped_records,
            in_file_order: summary.in_file_order,
            in_file_order_records: summary.in_file_order_records,
            provenance: Provenance::from_inputs(summary.inputs),
        }
    }
}

/// A placeholder without HDF5; it has no values.
#[cfg(not(feature = "hdf5"))]
struct Store(std::convert::Infallible);

#[cfg(not(feature = "hdf5"))]
impl Store {
    fn create(target: &Path, _: Encoding) -> Result<Self> {
        let problem = "is a store of HDF5, which this build of drift does not support";
        Err(drift_core::error::Error::input(target.display(), problem, "build it with --features hdf5"))
    }

    fn push(&mut self, _: &[Conformer]) -> Result<()> {
        match self.0 {}
    }

    fn finish(self, _: Vec<drift_core::job::InputHash>, _: u64) -> Result<AtomicFile> {
        match self.0 {}
    }
}
