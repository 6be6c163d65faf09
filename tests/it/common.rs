//! What several tests need.

use std::path::{Path, PathBuf};

use drift::Result;
use drift::corpus::{Batch, Conformer, Context, ReadOptions, SkippedRecord, hdf5};
use drift::job::Job;

/// A file of `tests/fixtures`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Everything that a reader emits.
pub(crate) fn collect(
    read: impl FnOnce(Context<'_>, &mut dyn FnMut(Batch) -> Result<()>) -> Result<()>,
) -> Result<(Vec<Conformer>, Vec<SkippedRecord>)> {
    let (mut conformers, mut skipped) = (Vec::new(), Vec::new());
    let job = Job::default();
    let options = ReadOptions::default();
    read(Context { options: &options, job: &job }, &mut |batch| {
        conformers.extend(batch.conformers);
        skipped.extend(batch.skipped);
        Ok(())
    })?;
    Ok((conformers, skipped))
}

/// Reads an HDF5 file, which messages call `file.h5`.
pub(crate) fn read_hdf5(path: &Path) -> Result<(Vec<Conformer>, Vec<SkippedRecord>)> {
    collect(|context, emit| hdf5::read(path, "file.h5", context, emit))
}

/// Reads a damaged HDF5 file: whatever was done to its bytes, the answer is conformers or one error of one line,
/// never a panic. Whether it was read.
pub(crate) fn reads_or_refuses(path: &Path, bytes: &[u8], what: &str) -> bool {
    std::fs::write(path, bytes).unwrap();
    match read_hdf5(path) {
        Ok(_) => true,
        Err(error @ drift::Error::Input { .. }) => {
            let text = error.to_string();
            assert!(text.starts_with("file.h5") && !text.contains('\n'), "{what}: {text}");
            false
        }
        Err(other) => panic!("{what}: {other:?}"),
    }
}
