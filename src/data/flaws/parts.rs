//! The conformers of a share of the files, as a shard stores them to be checked when shards are merged: with their places and the
//! columns that a check reads.

use std::io::Read;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::report::COLUMNS;
use crate::corpus::{
    AtomOrder, Batch, BatchSink, Cells, Conformer, Conformers, ReadOptions, ReadSummary, RowNeeds,
};
use crate::shard::files::{FilesDone, FilesShard, FilesSummary, MergedFiles, check_part};
use drift_core::encoding::{DecimalForms, Fixed, Reading};
use drift_core::io::{AtomicFile, file_name, open, pack, unpack};
use drift_core::{Error, Job, Result};

/// The bytes before the content of a frame: its length in hexadecimal, and a line end.
const HEAD_BYTES: usize = 17;

/// A batch as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredBatch {
    file: String,
    lines: Vec<u64>,
    cells: Vec<Vec<Option<String>>>,
    conformers: Vec<StoredConformer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredConformer {
    /// `None` if it is that of the conformer before.
    molecule: Option<String>,
    /// The same.
    skeleton: Option<String>,
    coordinates: Vec<[Fixed; 3]>,
    in_file_order: bool,
    written: DecimalForms,
}

impl StoredBatch {
    fn new(batch: &Batch) -> Self {
        let mut last: Option<&Conformer> = None;
        let mut conformers = Vec::with_capacity(batch.conformers.len());
        for conformer in &batch.conformers {
            let is_molecule = last.is_some_and(|last| last.molecule == conformer.molecule);
            let is_skeleton = last.is_some_and(|last| last.skeleton == conformer.skeleton);
            conformers.push(StoredConformer {
                molecule: (!is_molecule).then(|| conformer.molecule.to_string()),
                skeleton: (!is_skeleton).then(|| conformer.skeleton.to_string()),
                coordinates: conformer.coordinates.clone(),
                in_file_order: conformer.order == AtomOrder::File,
                written: conformer.written,
            });
            last = Some(conformer);
        }
        let texts = |cells: &Cells| cells.iter().map(|cell| cell.as_deref().map(str::to_owned)).collect();
        let cells = batch.cells.iter().map(texts).collect();
        StoredBatch { file: batch.file.to_string(), lines: batch.lines.clone(), cells, conformers }
    }

    fn batch(self) -> Batch {
        let (mut molecule, mut skeleton): (Arc<str>, Arc<str>) = ("".into(), "".into());
        let mut conformers = Vec::with_capacity(self.conformers.len());
        for stored in self.conformers {
            molecule = stored.molecule.map_or(molecule, Arc::from);
            skeleton = stored.skeleton.map_or(skeleton, Arc::from);
            conformers.push(Conformer {
                order: if stored.in_file_order { AtomOrder::File } else { AtomOrder::Smiles },
                written: stored.written,
                ..Conformer::new(molecule.clone(), skeleton.clone(), stored.coordinates)
            });
        }
        let shared = |cells: Vec<Option<String>>| cells.into_iter().map(|cell| cell.map(Arc::from)).collect();
        let cells = self.cells.into_iter().map(shared).collect();
        Batch { conformers, lines: self.lines, cells, file: self.file.into(), ..Batch::default() }
    }
}

/// Returns how files are read for a check.
pub fn needing_columns(options: &ReadOptions) -> ReadOptions {
    ReadOptions { needs: RowNeeds { columns: COLUMNS, bytes_for: None }, ..options.clone() }
}

/// Reads the files of a shard into parts that are checked when shards are merged.
///
/// # Errors
/// The errors of [`corpus::read`](crate::corpus::read()), or if a part cannot be written.
pub fn check_shard(options: &ReadOptions, shard: &mut FilesShard, job: &Job) -> Result<FilesDone> {
    let options = needing_columns(options);
    shard.run("part", job, &mut |listing, files, path| {
        let mut file = AtomicFile::create(path)?;
        let summary = listing.read(files, &options, job, &mut |batch| {
            let json = serde_json::to_vec(&StoredBatch::new(&batch));
            let json = json.map_err(|e| Error::internal("the conformers of a shard", e))?;
            let packed = pack(&json).map_err(|e| Error::internal("the conformers of a shard", e))?;
            file.put(format!("{:016x}\n", packed.len()).as_bytes())?;
            file.put(&packed)
        })?;
        Ok((FilesSummary::new(summary, &options), file))
    })
}

/// The parts of all shards, as a source of conformers.
#[derive(Debug)]
pub struct CheckedParts {
    /// The parts, in order.
    pub parts: MergedFiles,
    /// How their files were read.
    pub reading: Reading,
}

impl Conformers for CheckedParts {
    fn read(&self, job: &Job, emit: &mut BatchSink<'_>) -> Result<ReadSummary> {
        for (path, part) in &self.parts.parts {
            let mut opened = open(path, job);
            let fail = |e| job.check().err().unwrap_or_else(|| Error::io(path, e));
            while let Some(batch) = next(&mut opened.reader).map_err(fail)? {
                job.check()?;
                emit(batch)?;
            }
            check_part(path, &opened.finish(file_name(path)).map_err(fail)?, part)?;
        }
        self.parts.read_summary()
    }

    fn reading(&self) -> Reading {
        self.reading
    }
}

/// Returns the next batch; `None` at the end of the part.
fn next(reader: &mut dyn Read) -> std::io::Result<Option<Batch>> {
    let damaged = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let mut head = Vec::new();
    reader.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    if head.is_empty() {
        return Ok(None);
    }
    let length = std::str::from_utf8(head.trim_ascii_end()).map_err(|_| damaged())?;
    let length = u64::from_str_radix(length, 16).map_err(|_| damaged())?;
    let (mut packed, mut json) = (Vec::new(), Vec::new());
    reader.take(length).read_to_end(&mut packed)?;
    unpack(&packed, &mut json)?;
    let stored: StoredBatch = serde_json::from_slice(&json).map_err(|_| damaged())?;
    Ok(Some(stored.batch()))
}
