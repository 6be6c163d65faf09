//! Writes the weights in pieces, so that memory does not grow with the model.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::pieces::Piece;
use drift_core::io::AtomicFile;
use drift_core::{Error, Job, Result};

/// The number of bytes that are copied between two checks for cancellation.
const AT_ONCE: u64 = 1 << 23;

/// A weights file that is being written under a temporary name.
pub(super) struct GrowingFile {
    source: PathBuf,
    from: File,
    to: AtomicFile,
}

impl GrowingFile {
    /// Starts the file with room for a header of `room` bytes.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn begin(source: &Path, target: &Path, room: usize) -> Result<Self> {
        let from = File::open(source).map_err(|e| Error::io(source, e))?;
        let mut to = AtomicFile::create(target)?;
        // safetensors pads headers with spaces. The final header may be shorter than its room.
        to.put(&vec![b' '; room])?;
        Ok(GrowingFile { source: source.to_owned(), from, to })
    }

    /// Adds pieces; stops early once `unwanted` is set.
    ///
    /// # Errors
    /// If the system refuses, or the job was cancelled.
    pub(super) fn add(&mut self, pieces: &[Piece<'_>], unwanted: &AtomicBool, job: &Job) -> Result<()> {
        for piece in pieces {
            match piece {
                Piece::Old { offset, bytes } => {
                    self.from.seek(SeekFrom::Start(*offset)).map_err(|e| Error::io(&self.source, e))?;
                    let mut left = *bytes;
                    // If stopped early, the file is too short. But then the other thread has failed, and nothing is kept.
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

    /// Writes the header, and returns the complete file.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn finish(mut self, header: &[u8]) -> Result<AtomicFile> {
        self.to.put_first(header)?;
        Ok(self.to)
    }
}
