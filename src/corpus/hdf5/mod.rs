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

use std::path::Path;

use rust_hdf5::{DatatypeMessage, H5Dataset, H5File, Hdf5Error};

use super::store::layout;
use super::{Context, Emit};
use crate::error::{Error, Result};

/// A chunk larger than this is refused: it would have to be decompressed whole.
const MAX_CHUNK_BYTES: usize = 64 << 20;

/// Reads the conformers of the HDF5 file at `path`; `name` is what messages call it.
///
/// # Errors
/// If it is truncated or corrupt, or in no known layout, or written by a newer drift.
pub fn read(path: &Path, name: &str, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    refuse_truncated(path, name)?;
    let file = H5File::options().best_effort_locking().open(path).map_err(|e| unreadable(name, &e))?;
    let attributes = file.attr_names().map_err(|e| unreadable(name, &e))?;
    if !attributes.iter().any(|a| a == "schema") {
        return molecules::read(&file, name, context, emit);
    }
    let schema = file.attr_string("schema").map_err(|e| unreadable(name, &e))?;
    match schema.strip_prefix(layout::SCHEMA_NAME) {
        Some(_) if schema == layout::SCHEMA => store::read(&file, name, context, emit),
        Some(_) => {
            let problem = format!("schema `{schema}`, but this drift reads `{}`", layout::SCHEMA);
            Err(Error::input(
                name,
                problem,
                "it was written by another version of drift: use that one, or mine again",
            ))
        }
        None => molecules::read(&file, name, context, emit),
    }
}

fn refuse_truncated(path: &Path, name: &str) -> Result<()> {
    let fail = |e| Error::io(path, e);
    let mut file = std::fs::File::open(path).map_err(fail)?;
    let declared = superblock::declared_len(&mut file).map_err(fail)?;
    let len = file.metadata().map_err(fail)?.len();
    match declared {
        Some(declared) if declared > len => {
            let problem = format!("truncated: {len} of {declared} bytes are there");
            Err(Error::input(name, problem, "fetch it again"))
        }
        _ => Ok(()),
    }
}

/// What rust-hdf5 refuses.
fn unreadable(name: &str, error: &Hdf5Error) -> Error {
    Error::input(name, format!("not a readable HDF5 file: {error}"), "is it complete?")
}

/// What rust-hdf5 can read but makes no sense.
fn inconsistent(name: &str, dataset: &str, problem: impl std::fmt::Display) -> Error {
    Error::input(format!("{name}: /{dataset}"), problem, "is the file damaged?")
}

/// Refuses datasets whose chunks are too large to hold.
fn check_chunks(name: &str, path: &str, dataset: &H5Dataset) -> Result<()> {
    let elements = dataset.chunk_dims().unwrap_or_default().iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    match elements.and_then(|n| n.checked_mul(dataset.element_size())) {
        Some(bytes) if bytes <= MAX_CHUNK_BYTES => Ok(()),
        _ => Err(inconsistent(name, path, format!("chunks of more than {} MiB", MAX_CHUNK_BYTES >> 20))),
    }
}

/// Whether the type is an integer of that size and sign.
fn is_integer(datatype: &DatatypeMessage, bytes: usize, is_signed: bool) -> bool {
    matches!(datatype, DatatypeMessage::FixedPoint { size, signed, .. }
        if *size as usize == bytes && *signed == is_signed)
}
