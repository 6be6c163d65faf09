//! drift's own HDF5 store: the coordinates and skeletons of a corpus, compact, and readable by any HDF5 library.
//!
//! | path | type and shape | holds |
//! | --- | --- | --- |
//! | `/coordinates` | i32 `[blocks, 3]` | x, y, z in 10⁻⁴ Å, truncated toward zero |
//! | `/conformers/offset` | u64 `[conformers + 1]` | conformer `i` has the rows `offset[i]..offset[i + 1]` of `/coordinates` |
//! | `/conformers/molecule` | u32 `[conformers]` | row of its molecule |
//! | `/conformers/flags` | u8 `[conformers]` | bit 0: atoms in SMILES order; bit 1, 2: text agreed with fixed, stripped |
//! | `/molecules/smiles` | u8 `[bytes]` | names (SMILES where known), UTF-8, one after another |
//! | `/molecules/smiles_offset` | u64 `[molecules + 1]` | name `m` has the bytes `smiles_offset[m]..smiles_offset[m + 1]` |
//! | `/molecules/skeleton` | u8 `[bytes]` | skeletons `[C]<>[C]<>=[O]<>`, likewise |
//! | `/molecules/skeleton_offset` | u64 `[molecules + 1]` | likewise |
//!
//! All datasets are chunked, with shuffle and deflate. Root attributes, all strings: `schema` = `drift.corpus/1`, `unit`
//! = `1e-4 angstrom` (or `of the encoding`, then `encoding` says which, as JSON), `provenance` (JSON: program, version, git revision, inputs by name, size and SHA-256) and
//! `skipped` (JSON: number of bad records). No date and no thread count: the same input gives the same bytes again.
//!
//! Conformers with the same name and skeleton share a molecule row as long as they come within [`RECENT_MOLECULES`]
//! molecules of each other (and [`RECENT_BYTES`] of text); a molecule that comes back later gets a new row. That, the
//! chunks in flight and one unfinished chunk per dataset are all that is kept in memory, about 60 MB at most.

mod column;
mod compress;
pub(crate) mod layout;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rust_hdf5::{H5File, Hdf5Error};

use super::Conformer;
use column::Column;
use compress::{Chunk, Compressor};
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result};
use drift_core::io::AtomicFile;
use drift_core::job::{InputHash, Provenance};
pub use layout::SCHEMA;

/// Molecules that are remembered for sharing rows.
pub const RECENT_MOLECULES: usize = 1 << 16;
/// Bytes of their names and skeletons.
pub const RECENT_BYTES: usize = 16 << 20;

/// More threads than this would only cost memory.
const MAX_THREADS: usize = 8;

/// In the order of [`StoreWriter::columns`].
const FIELDS: [layout::Field; 8] = [
    layout::COORDINATES,
    layout::OFFSET,
    layout::MOLECULE,
    layout::FLAGS,
    layout::SMILES,
    layout::SMILES_OFFSET,
    layout::SKELETON,
    layout::SKELETON_OFFSET,
];
const COORDINATES: usize = 0;
const OFFSET: usize = 1;
const MOLECULE: usize = 2;
const FLAGS: usize = 3;
const SMILES: usize = 4;
const SMILES_OFFSET: usize = 5;
const SKELETON: usize = 6;
const SKELETON_OFFSET: usize = 7;

/// What a finished store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSummary {
    /// Conformers.
    pub conformers: u64,
    /// Rows of molecules, see the module's note on sharing.
    pub molecules: u64,
    /// Coordinate blocks.
    pub blocks: u64,
}

/// Writes a store; the file appears under its name only when [`finish`](Self::finish)ed.
pub struct StoreWriter {
    columns: Vec<Column>,
    encoding: Encoding,
    /// `None` once closed.
    file: Option<H5File>,
    compressor: Compressor,
    recent: Recent,
    target: PathBuf,
    /// `None` once committed; dropped last, which deletes an unfinished file.
    output: Option<AtomicFile>,
}

impl StoreWriter {
    /// Starts a store of conformers of an encoding that will be at `target`, compressing on as many threads as rayon has here (8 at most).
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn create(target: &Path, encoding: Encoding) -> Result<Self> {
        let output = AtomicFile::create(target)?;
        let fail = |e| write_error(target, e);
        let options = H5File::options().best_effort_locking();
        let file = options.create(output.path()).map_err(fail)?;
        let columns = create_columns(&file).map_err(fail)?;
        let threads = rayon::current_num_threads().clamp(1, MAX_THREADS);
        let compressor = Compressor::new(threads, layout::DEFLATE_LEVEL).map_err(|e| Error::io(target, e))?;
        let mut writer = StoreWriter {
            columns,
            encoding,
            file: Some(file),
            compressor,
            recent: Recent::default(),
            target: target.to_owned(),
            output: Some(output),
        };
        for offsets in [OFFSET, SMILES_OFFSET, SKELETON_OFFSET] {
            writer.append(offsets, &0u64.to_le_bytes())?;
        }
        Ok(writer)
    }

    /// Appends conformers.
    ///
    /// # Errors
    /// If the system refuses to write, or there are more than 2³² molecules.
    pub fn push(&mut self, batch: &[Conformer]) -> Result<()> {
        let mut bytes = Vec::new();
        for conformer in batch {
            let molecule = self.molecule(conformer)?;
            bytes.clear();
            bytes.extend(conformer.coordinates.iter().flatten().flat_map(|value| value.to_le_bytes()));
            self.append(COORDINATES, &bytes)?;
            self.append_rows_of(COORDINATES, OFFSET)?;
            self.append(MOLECULE, &molecule.to_le_bytes())?;
            self.append(FLAGS, &[layout::flags(conformer.order, conformer.written)])?;
        }
        Ok(())
    }

    /// Writes what is left, and the attributes, and gives the file its name. `skipped` counts the bad records.
    ///
    /// # Errors
    /// If the system refuses to write; nothing is left then.
    pub fn finish(self, inputs: Vec<InputHash>, skipped: u64) -> Result<StoreSummary> {
        let (summary, file) = self.finish_uncommitted(inputs, skipped)?;
        file.commit()?;
        Ok(summary)
    }

    /// As [`finish`](Self::finish), but the file, though whole, has not its name yet.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_uncommitted(
        mut self,
        inputs: Vec<InputHash>,
        skipped: u64,
    ) -> Result<(StoreSummary, AtomicFile)> {
        let rows: Vec<usize> = self.columns.iter().map(Column::rows).collect();
        for column in 0..self.columns.len() {
            if let Some(chunk) = self.columns[column].last(column) {
                self.send(chunk)?;
            }
        }
        while self.write_next()? {}
        let fail = |e| write_error(&self.target, e);
        for (column, &rows) in self.columns.iter().zip(&rows) {
            column.set_rows(rows).map_err(fail)?;
        }
        let provenance = serde_json::to_string(&Provenance::from_inputs(inputs))
            .map_err(|e| Error::internal(self.target.display(), format!("provenance: {e}")))?;
        if let Some(file) = &self.file {
            file.set_attr_string("schema", layout::SCHEMA).map_err(fail)?;
            file.set_attr_string("unit", &layout::unit(self.encoding)).map_err(fail)?;
            if !self.encoding.is_decimal() {
                let encoding = serde_json::to_string(&self.encoding)
                    .map_err(|e| Error::internal(self.target.display(), format!("encoding: {e}")))?;
                file.set_attr_string("encoding", &encoding).map_err(fail)?;
            }
            file.set_attr_string("provenance", &provenance).map_err(fail)?;
            file.set_attr_string("skipped", &skipped.to_string()).map_err(fail)?;
            // A full disk is met here, not while closing, which would print.
            file.flush().map_err(fail)?;
        }
        self.file.take().map_or(Ok(()), H5File::close_no_sync).map_err(fail)?;
        let summary = StoreSummary {
            conformers: rows[MOLECULE] as u64,
            molecules: rows[SMILES_OFFSET] as u64 - 1,
            blocks: rows[COORDINATES] as u64,
        };
        match self.output.take() {
            Some(output) => Ok((summary, output)),
            None => Err(Error::internal(self.target.display(), "finished twice")),
        }
    }

    /// The row of a conformer's molecule, a new one if it was not seen lately.
    fn molecule(&mut self, conformer: &Conformer) -> Result<u32> {
        if let Some(row) = self.recent.find(conformer) {
            return Ok(row);
        }
        let row = u32::try_from(self.columns[SMILES_OFFSET].rows() - 1).map_err(|_| {
            Error::input(self.target.display(), "more than 2^32 molecules", "split the input")
        })?;
        self.append(SMILES, conformer.molecule.as_bytes())?;
        self.append_rows_of(SMILES, SMILES_OFFSET)?;
        self.append(SKELETON, conformer.skeleton.as_bytes())?;
        self.append_rows_of(SKELETON, SKELETON_OFFSET)?;
        self.recent.insert(conformer, row);
        Ok(row)
    }

    /// Appends the number of rows of one column to another.
    fn append_rows_of(&mut self, column: usize, offsets: usize) -> Result<()> {
        let rows = self.columns[column].rows() as u64;
        self.append(offsets, &rows.to_le_bytes())
    }

    /// Appends whole rows.
    fn append(&mut self, column: usize, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if let Some(chunk) = self.columns[column].fill(&mut bytes, column) {
                self.send(chunk)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, chunk: Chunk) -> Result<()> {
        while self.compressor.full() {
            self.write_next()?;
        }
        self.compressor.send(chunk).map_err(|e| Error::io(&self.target, e))
    }

    /// Writes the next compressed chunk; false if none is in flight.
    fn write_next(&mut self) -> Result<bool> {
        let next = self.compressor.take().map_err(|e| Error::io(&self.target, e))?;
        let Some(chunk) = next else { return Ok(false) };
        self.columns[chunk.column].write(&chunk).map_err(|e| write_error(&self.target, e))?;
        Ok(true)
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        // An unfinished file is about to be deleted. rust-hdf5 would finish it first, and print where it cannot; so it is
        // leaked, and its place on the disk given back.
        if let Some(file) = self.file.take() {
            std::mem::forget(file);
            self.output.as_ref().into_iter().for_each(AtomicFile::clear);
        }
    }
}

fn create_columns(file: &H5File) -> rust_hdf5::Result<Vec<Column>> {
    file.create_group("conformers")?;
    file.create_group("molecules")?;
    FIELDS.iter().map(|&field| Column::create(file, field)).collect()
}

fn write_error(target: &Path, error: Hdf5Error) -> Error {
    match error {
        Hdf5Error::Io(source) => Error::io(target, source),
        other => {
            // The layer below hands on the system's error, but only in words.
            let words = other.to_string();
            let number =
                words.rsplit_once("(os error ").and_then(|(_, end)| end.strip_suffix(')')?.parse().ok());
            let source = number.map_or_else(|| io::Error::other(other), io::Error::from_raw_os_error);
            Error::io(target, source)
        }
    }
}

/// Name and skeleton of a molecule.
type Key = (Arc<str>, Arc<str>);

/// The molecules seen lately; forgets all of them when it is full.
#[derive(Default)]
struct Recent {
    rows: HashMap<Key, u32>,
    bytes: usize,
    last: Option<(Key, u32)>,
}

impl Recent {
    fn find(&mut self, conformer: &Conformer) -> Option<u32> {
        if let Some(((molecule, skeleton), row)) = &self.last
            && *molecule == conformer.molecule
            && *skeleton == conformer.skeleton
        {
            return Some(*row);
        }
        let key = (conformer.molecule.clone(), conformer.skeleton.clone());
        let row = *self.rows.get(&key)?;
        self.last = Some((key, row));
        Some(row)
    }

    fn insert(&mut self, conformer: &Conformer, row: u32) {
        let size = conformer.molecule.len() + conformer.skeleton.len();
        if self.rows.len() >= RECENT_MOLECULES || self.bytes + size > RECENT_BYTES {
            self.rows.clear();
            self.bytes = 0;
        }
        let key = (conformer.molecule.clone(), conformer.skeleton.clone());
        self.last = Some((key.clone(), row));
        self.rows.insert(key, row);
        self.bytes += size;
    }
}
