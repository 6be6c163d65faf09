//! drift's own HDF5 store: the coordinates and skeletons of a corpus, in a compact form that any HDF5 library can read.
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
//! All datasets are chunked, with shuffle and deflate. The root attributes are strings: `schema` = `drift.corpus/1`,
//! `unit` = `1e-4 angstrom` (or `of the encoding`, with the encoding as JSON in `encoding`), `provenance` (JSON: program, version,
//! git revision, inputs by name, size and SHA-256) and `skipped` (the number of skipped records). The store contains no date and no
//! thread count, so the same input always gives the same bytes.
//!
//! Conformers with the same name and skeleton share a molecule row as long as they come within [`RECENT_MOLECULES`] molecules of
//! each other (and [`RECENT_BYTES`] of text). A molecule that comes back later gets a new row. Only these recent molecules, the
//! chunks in flight and one unfinished chunk per dataset are kept in memory, about 60 MB at most.

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
use drift_core::io::AtomicFile;
use drift_core::job::{InputHash, Provenance};
use drift_core::{Encoding, Error, Result};
pub use layout::SCHEMA;
use layout::{
    COORDINATES, FIELDS, FLAGS, Field, MOLECULE, OFFSET, SKELETON, SKELETON_OFFSET, SMILES, SMILES_OFFSET,
};

/// The largest number of molecules that are remembered for sharing rows.
pub(crate) const RECENT_MOLECULES: usize = 1 << 16;
/// The largest total size of their names and skeletons, in bytes.
pub(crate) const RECENT_BYTES: usize = 16 << 20;

/// The largest number of threads; more would only cost memory.
const MAX_THREADS: usize = 8;

/// Writes a store. The file appears under its name only after [`finish`](Self::finish) and the commit of its result.
pub struct StoreWriter {
    /// In the order of [`FIELDS`].
    columns: Vec<Column>,
    encoding: Encoding,
    /// `None` after closing.
    file: Option<H5File>,
    compressor: Compressor,
    recent: RecentMolecules,
    target: PathBuf,
    /// `None` after [`finish`](Self::finish). Dropped last, which deletes an unfinished file.
    output: Option<AtomicFile>,
}

impl StoreWriter {
    /// Starts a store at `target` for conformers of an encoding. Compresses on as many threads as rayon has here (8 at most).
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
            recent: RecentMolecules::default(),
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

    /// Writes the remaining chunks and the attributes, and returns the complete file before it gets its name. `skipped` is the
    /// number of bad records.
    ///
    /// # Errors
    /// If the system refuses to write. No file is left then.
    pub fn finish(mut self, inputs: Vec<InputHash>, skipped: u64) -> Result<AtomicFile> {
        let rows: Vec<usize> = self.columns.iter().map(Column::rows).collect();
        for column in 0..self.columns.len() {
            if let Some(chunk) = self.columns[column].last() {
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
            // This way a full disk is noticed here, not while closing, which would print the error.
            file.flush().map_err(fail)?;
        }
        self.file.take().map_or(Ok(()), H5File::close_no_sync).map_err(fail)?;
        self.output.take().ok_or_else(|| Error::internal(self.target.display(), "finished twice"))
    }

    /// Returns the row of a conformer's molecule; a new row if the molecule was not seen recently.
    fn molecule(&mut self, conformer: &Conformer) -> Result<u32> {
        if let Some(row) = self.recent.find(conformer) {
            return Ok(row);
        }
        let row = u32::try_from(self.columns[SMILES_OFFSET.column].rows() - 1).map_err(|_| {
            Error::input(self.target.display(), "more than 2^32 molecules", "split the input")
        })?;
        self.append(SMILES, conformer.molecule.as_bytes())?;
        self.append_rows_of(SMILES, SMILES_OFFSET)?;
        self.append(SKELETON, conformer.skeleton.as_bytes())?;
        self.append_rows_of(SKELETON, SKELETON_OFFSET)?;
        self.recent.insert(conformer, row);
        Ok(row)
    }

    /// Appends the number of rows of a dataset to the dataset `offsets`.
    fn append_rows_of(&mut self, field: Field, offsets: Field) -> Result<()> {
        let rows = self.columns[field.column].rows() as u64;
        self.append(offsets, &rows.to_le_bytes())
    }

    /// Appends whole rows.
    fn append(&mut self, field: Field, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if let Some(chunk) = self.columns[field.column].fill(&mut bytes) {
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

    /// Writes the next compressed chunk; false if no chunk is in flight.
    fn write_next(&mut self) -> Result<bool> {
        let next = self.compressor.take().map_err(|e| Error::io(&self.target, e))?;
        let Some(chunk) = next else { return Ok(false) };
        self.columns[chunk.column].write(&chunk).map_err(|e| write_error(&self.target, e))?;
        Ok(true)
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        // An unfinished file is about to be deleted. rust-hdf5 would finish it first, and print any error. So its handle is leaked,
        // and its disk space is freed.
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
            // rust-hdf5 passes on the system's error only as text.
            let words = other.to_string();
            let number =
                words.rsplit_once("(os error ").and_then(|(_, end)| end.strip_suffix(')')?.parse().ok());
            let source = number.map_or_else(|| io::Error::other(other), io::Error::from_raw_os_error);
            Error::io(target, source)
        }
    }
}

/// The name and skeleton of a molecule.
type Key = (Arc<str>, Arc<str>);

/// The recently seen molecules. All are forgotten when it is full.
#[derive(Default)]
struct RecentMolecules {
    rows: HashMap<Key, u32>,
    bytes: usize,
    last: Option<(Key, u32)>,
}

impl RecentMolecules {
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
