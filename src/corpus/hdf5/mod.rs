//! HDF5 files, recognised by layout: drift's store, SPICE, ANI-1x.
//!
//! | layout | recognised by | coordinates |
//! | --- | --- | --- |
//! | drift's store | root attribute `schema` | see [`crate::corpus::store`] |
//! | SPICE (doi 10.5281/zenodo.8222043) | groups with `conformations` and `atomic_numbers` | f32 or f64 `[M, N, 3]`, bohr |
//! | ANI-1x (doi 10.6084/m9.figshare.10047041) | groups with `coordinates` and `atomic_numbers` | f32 `[M, N, 3]`, Å |
//!
//! Datasets are read in slices, so memory does not grow with the file; rust-hdf5 keeps a list of all its objects.

mod molecules;
mod store;
mod stream;
mod superblock;

use std::fs::File;
use std::path::Path;

use rust_hdf5::{DatatypeMessage, H5Dataset, H5File, Hdf5Error};

use super::store::layout;
use super::{Context, Emit};
use crate::error::{Error, Result};
use crate::text::Precision;

/// A chunk larger than this is refused: it would have to be decompressed whole.
const MAX_CHUNK_BYTES: usize = 64 << 20;

/// Deflate shrinks to 1/1032 at best; a dataset that claims more per byte of the file is not really there.
const MAX_RATIO: u64 = 1100;

/// Reads the conformers of the HDF5 file at `path`; `name` is what messages call it.
///
/// # Errors
/// If it is truncated or corrupt, or in no known layout, or written by a newer drift.
pub fn read(path: &Path, name: &str, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    let len = checked_len(path, name)?;
    let options = H5File::options().best_effort_locking();
    let file = options.open(path).map_err(|e| unreadable(name, &e))?;
    let container = Container { name, file, len };
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

/// The size of the file in bytes, no smaller than what it says itself.
fn checked_len(path: &Path, name: &str) -> Result<u64> {
    let fail = |e| Error::io(path, e);
    let mut file = File::open(path).map_err(fail)?;
    let declared = superblock::declared_len(&mut file).map_err(fail)?;
    let len = file.metadata().map_err(fail)?.len();
    match declared {
        Some(declared) if declared > len => {
            let problem = format!("truncated: {len} of {declared} bytes are there");
            Err(Error::input(name, problem, "fetch it again"))
        }
        _ => Ok(len),
    }
}

fn unreadable(name: &str, error: &Hdf5Error) -> Error {
    Error::input(name, format!("not a readable HDF5 file: {error}"), "is it whole?")
}

/// An open file.
struct Container<'a> {
    /// What messages call it.
    name: &'a str,
    file: H5File,
    /// Bytes.
    len: u64,
}

impl Container<'_> {
    /// The attribute `schema` if it is one of drift's.
    fn schema(&self) -> Result<Option<String>> {
        let attributes = self.file.attr_names().map_err(|e| self.unreadable(&e))?;
        if !attributes.iter().any(|a| a == "schema") {
            return Ok(None);
        }
        let schema = self.file.attr_string("schema").map_err(|e| self.unreadable(&e))?;
        Ok(schema.starts_with(layout::SCHEMA_NAME).then_some(schema))
    }

    /// The decimals of a store's coordinates.
    fn precision(&self) -> Result<Precision> {
        let unit = self.file.attr_string("unit").map_err(|e| self.unreadable(&e))?;
        layout::precision_of(&unit)
            .ok_or_else(|| Error::input(self.name, format!("unknown unit `{unit}`"), "is the file damaged?"))
    }

    /// What rust-hdf5 refuses.
    fn unreadable(&self, error: &Hdf5Error) -> Error {
        unreadable(self.name, error)
    }

    /// What rust-hdf5 can read but makes no sense.
    fn inconsistent(&self, dataset: &str, problem: impl std::fmt::Display) -> Error {
        Error::input(format!("{}: /{dataset}", self.name), problem, "is the file damaged?")
    }

    /// Opens a dataset whose chunks can be held and whose size is possible.
    fn open(&self, path: &str) -> Result<H5Dataset> {
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

/// Whether the type is an integer of that size and sign.
fn is_integer(datatype: &DatatypeMessage, bytes: usize, is_signed: bool) -> bool {
    matches!(datatype, DatatypeMessage::FixedPoint { size, signed, .. }
        if *size as usize == bytes && *signed == is_signed)
}
