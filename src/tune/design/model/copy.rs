//! The weights, written in pieces: memory does not grow with the model.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::pieces::Piece;
use drift_core::error::{Error, Result};
use drift_core::io::AtomicFile;
use drift_core::job::Job;

/// How much is copied between two looks at whether it is still wanted.
const AT_ONCE: u64 = 1 << 23;

/// A file of weights that is being written beside its name.
pub(super) struct GrowingFile {
    source: PathBuf,
    from: File,
    to: AtomicFile,
}

impl GrowingFile {
    /// Begins it with room for a header of so many bytes.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn begin(source: &Path, target: &Path, room: usize) -> Result<Self> {
        let from = File::open(source).map_err(|e| Error::io(source, e))?;
        let mut to = AtomicFile::create(target)?;
        // Spaces, with which safetensors pads its headers: the true header may be shorter than its room.
        to.put(&vec![b' '; room])?;
        Ok(GrowingFile { source: source.to_owned(), from, to })
    }

    /// Adds pieces, unless it is not wanted any more.
    ///
    /// # Errors
    /// If the system refuses, or the job was cancelled.
    pub(super) fn add(&mut self, pieces: &[Piece<'_>], unwanted: &AtomicBool, job: &Job) -> Result<()> {
        for piece in pieces {
            match piece {
                Piece::Old { offset, bytes } => {
                    self.from.seek(SeekFrom::Start(*offset)).map_err(|e| Error::io(&self.source, e))?;
                    let mut left = *bytes;
                    // Left early, the file is short; but then the other thread has an error, and nothing is kept.
                    while left > 0 && !unwanted.load(Ordering::Relaxed) {
                        job.check()?;
                        let some = left.min(AT_ONCE);
                        self.to.copy(&mut self.from, some)?;
                        job.observer().advance(some);
                        left -= some;
                    }
                }
                Piece::New(bytes) => self.to.put(bytes)?,
                Piece::Repeated(bytes, times) => {
                    job.check()?;
                    (0..*times).try_for_each(|_| self.to.put(bytes))?;
                }
            }
        }
        Ok(())
    }

    /// The whole file, once its header is known.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn finish(mut self, header: &[u8]) -> Result<AtomicFile> {
        self.to.put_first(header)?;
        Ok(self.to)
    }
}
