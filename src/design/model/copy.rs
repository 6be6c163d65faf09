//! The weights, written in pieces: memory does not grow with the model.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use super::pieces::{Piece, PlannedFile};
use crate::error::{Error, Result};
use crate::io::AtomicFile;
use crate::job::Job;

/// How much is copied between two looks at whether the job was cancelled.
const AT_ONCE: u64 = 1 << 23;

/// Writes a file of weights beside its name.
///
/// # Errors
/// If the system refuses, or the job was cancelled.
pub(super) fn copy(source: &Path, planned: &PlannedFile<'_>, target: &Path, job: &Job) -> Result<AtomicFile> {
    let mut from = File::open(source).map_err(|e| Error::io(source, e))?;
    let mut to = AtomicFile::create(target)?;
    to.put(&planned.header)?;
    for piece in &planned.pieces {
        match piece {
            Piece::Old { offset, bytes } => {
                from.seek(SeekFrom::Start(*offset)).map_err(|e| Error::io(source, e))?;
                let mut left = *bytes;
                while left > 0 {
                    job.check()?;
                    let some = left.min(AT_ONCE);
                    to.copy(&mut from, some)?;
                    job.observer().advance(some);
                    left -= some;
                }
            }
            Piece::New(bytes) => to.put(bytes)?,
            Piece::Repeated(bytes, times) => {
                job.check()?;
                (0..*times).try_for_each(|_| to.put(bytes))?;
            }
        }
    }
    Ok(to)
}
