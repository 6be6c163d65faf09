//! Reads HDF5 files, recognised by their layout: drift's store, SPICE, ANI-1x.
//!
//! | layout | recognised by | coordinates |
//! | --- | --- | --- |
//! | drift's store | root attribute `schema` | see [`crate::corpus::store`] |
//! | SPICE (doi 10.5281/zenodo.8222043) | groups with `conformations` and `atomic_numbers` | f32 or f64 `[M, N, 3]`, bohr |
//! | ANI-1x (doi 10.6084/m9.figshare.10047041) | groups with `coordinates` and `atomic_numbers` | f32 `[M, N, 3]`, Å |
//!
//! Datasets are read in slices, so memory does not grow with the file, except for a list of all its links.
//!
//! rust-hdf5 reads the data. Before that, drift walks through the file itself (`structure`), so that damaged, linked or missing
//! parts are never left out silently.

mod blocks;
mod chunks;
mod damaged;
mod header;
mod heap;
mod links;
mod molecules;
mod store;
mod stream;
mod structure;
mod superblock;
mod tree;

use std::cell::RefCell;
use std::fs::File;
use std::path::Path;

use rust_hdf5::{ChunkIndex, DatatypeMessage, H5Dataset, H5File, Hdf5Error};

use blocks::Blocks;
use damaged::Hdf5Result;
use structure::{FileRefusal, Structure};

use super::store::layout;
use super::{BatchSink, Context};
use drift_core::encoding::TrailingZeros;
use drift_core::{Encoding, Error, Result};

/// The largest chunk that is accepted: a chunk must be decompressed as a whole.
const MAX_CHUNK_BYTES: usize = 64 << 20;

/// Deflate compresses to 1/1032 at best, so a dataset that claims more data per byte of the file cannot be complete.
const MAX_RATIO: u64 = 1100;

/// Reads the conformers of the HDF5 file at `path`. Messages call it `name`.
///
/// # Errors
/// If it is truncated or damaged, has no known layout, was written by a newer drift, or keeps data in other files.
pub fn read(path: &Path, name: &str, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let (structure, len) = walk(path, name)?;
    // A lock keeps writers away, but not every file system supports locks.
    let options = H5File::options().best_effort_locking();
    let file = options.open(path).map_err(|e| unreadable(name, &e))?;
    let container = Container { name, file, len, structure: RefCell::new(structure) };
    match container.schema()? {
        None => molecules::read(&container, context, emit),
        Some(schema) if schema == layout::SCHEMA => store::read(&container, context, emit),
        Some(schema) => {
            let problem = format!("schema `{schema}`, but this drift reads `{}`", layout::SCHEMA);
            let remedy = "it was written by another version of drift: use that one, or mine again";
            Err(Error::input(name, problem, remedy))
        }
    }
}

/// Returns the links of the file, and its size in bytes.
fn walk(path: &Path, name: &str) -> Result<(Structure, u64)> {
    let fail = |e| Error::io(path, e);
    let mut file = File::open(path).map_err(fail)?;
    let superblock = superblock::read(&mut file).map_err(fail)?;
    let Some(superblock) = superblock else { return Err(unreadable(name, "no superblock")) };
    let superblock = superblock.map_err(|e| unreadable(name, e))?;
    let len = file.metadata().map_err(fail)?.len();
    let declared = superblock.start.saturating_add(superblock.end);
    if declared > len {
        let problem = format!("truncated: {len} of {declared} bytes are there");
        return Err(Error::input(name, problem, "fetch it again"));
    }
    let blocks = Blocks::new(file, superblock.start, superblock.end);
    let structure = Structure::read(blocks, &superblock).map_err(|refused| {
        let FileRefusal { path, problem, is_elsewhere } = refused;
        let place = if path.is_empty() { name.to_owned() } else { format!("{name}: /{path}") };
        match is_elsewhere {
            true => Error::input(place, problem, "copy it into one file, for example with `h5repack`"),
            false => unreadable(&place, problem),
        }
    })?;
    Ok((structure, len))
}

fn unreadable(name: &str, error: impl std::fmt::Display) -> Error {
    Error::input(name, format!("not a readable HDF5 file: {error}"), "is it whole?")
}

/// An open file.
struct Container<'a> {
    /// The name in messages.
    name: &'a str,
    file: H5File,
    /// The size of the file, in bytes.
    len: u64,
    structure: RefCell<Structure>,
}

impl Container<'_> {
    /// Returns the attribute `schema`, if it is one of drift's.
    fn schema(&self) -> Result<Option<String>> {
        let attributes = self.file.attr_names().map_err(|e| self.unreadable(&e))?;
        if let Some(reason) = self.file.attrs_unreadable_reason().map_err(|e| self.unreadable(&e))? {
            return Err(unreadable(self.name, format!("its attributes: {reason}")));
        }
        if !attributes.iter().any(|a| a == "schema") {
            return Ok(None);
        }
        let schema = self.file.attr_string("schema").map_err(|e| self.unreadable(&e))?;
        Ok(schema.starts_with(layout::SCHEMA_NAME).then_some(schema))
    }

    /// Returns the encoding of a store's values; for decimals the one that keeps trailing zeros.
    fn encoding(&self) -> Result<Encoding> {
        let unit = self.file.attr_string("unit").map_err(|e| self.unreadable(&e))?;
        if unit == layout::OWN_UNIT {
            let said = self.file.attr_string("encoding").map_err(|e| self.unreadable(&e))?;
            return serde_json::from_str(&said).map_err(|e| {
                Error::input(self.name, format!("its encoding: {e}"), "check whether the file is damaged")
            });
        }
        layout::precision_of(&unit)
            .map(|precision| Encoding::decimal(TrailingZeros::Kept, precision))
            .ok_or_else(|| {
                Error::input(self.name, format!("unknown unit `{unit}`"), "check whether the file is damaged")
            })
    }

    /// Returns the error for data that rust-hdf5 refuses.
    fn unreadable(&self, error: &Hdf5Error) -> Error {
        unreadable(self.name, error)
    }

    /// Returns the error for data that rust-hdf5 can read but that is inconsistent.
    fn inconsistent(&self, dataset: &str, problem: impl std::fmt::Display) -> Error {
        Error::input(format!("{}: /{dataset}", self.name), problem, "check whether the file is damaged")
    }

    /// Checks that a dataset is understood and its data exist. For chunks, see also [`check_chunks`](Self::check_chunks).
    fn check(&self, path: &str) -> Hdf5Result<()> {
        self.structure.borrow_mut().check(path)
    }

    /// Checks that the chunks of some rows exist, if the index alone does not guarantee it.
    fn check_chunks(&self, dataset: &H5Dataset, path: &str, first: usize, rows: usize) -> Result<()> {
        match dataset.chunk_index().map_err(|e| self.unreadable(&e))? {
            // Chunks in a version 1 B-tree were counted by `chunks`. A dataset without chunks has none to check.
            None | Some(ChunkIndex::BtreeV1) => return Ok(()),
            Some(_) => {}
        }
        let (shape, chunk) = (dataset.shape(), dataset.chunk_dims().unwrap_or_default());
        let Some(&along) = chunk.first().filter(|_| chunk.len() == shape.len() && !chunk.contains(&0)) else {
            return Err(self.inconsistent(path, "chunks without a size"));
        };
        let others: Vec<usize> =
            shape.iter().zip(&chunk).skip(1).map(|(&shape, &chunk)| shape.div_ceil(chunk)).collect();
        let each: usize = others.iter().product();
        for row in first / along..(first + rows).div_ceil(along) {
            for mut at in 0..each {
                let mut coordinates = vec![row; chunk.len()];
                for (coordinate, &count) in coordinates[1..].iter_mut().zip(&others).rev() {
                    (*coordinate, at) = (at % count, at / count);
                }
                if dataset.read_chunk_raw_at(&coordinates).is_err() {
                    return Err(self.inconsistent(path, format!("chunk {coordinates:?} is not there")));
                }
            }
        }
        Ok(())
    }

    /// Opens a dataset after checking that its data exist, its chunks fit into memory and its size is possible.
    fn open(&self, path: &str) -> Result<H5Dataset> {
        self.check(path).map_err(|e| self.inconsistent(path, e))?;
        let dataset = self.file.dataset(path).map_err(|e| self.unreadable(&e))?;
        let bytes = |shape: &[usize]| {
            shape.iter().try_fold(dataset.element_size() as u64, |bytes, &d| bytes.checked_mul(d as u64))
        };
        if bytes(&dataset.chunk_dims().unwrap_or_default()).is_none_or(|n| n > MAX_CHUNK_BYTES as u64) {
            return Err(self.inconsistent(path, format!("chunks of more than {} MiB", MAX_CHUNK_BYTES >> 20)));
        }
        if bytes(&dataset.shape()).is_none_or(|n| n > self.len.saturating_mul(MAX_RATIO)) {
            return Err(self.inconsistent(path, "more data than the file can hold"));
        }
        Ok(dataset)
    }
}

/// Returns whether the type is an integer with this size and sign.
fn is_integer(datatype: &DatatypeMessage, bytes: usize, is_signed: bool) -> bool {
    matches!(datatype, DatatypeMessage::FixedPoint { size, signed, .. }
        if *size as usize == bytes && *signed == is_signed)
}
