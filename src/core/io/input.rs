//! Files that are read once. They are decompressed by content, and counted and hashed while they are read. So a pipe works like a
//! file, and the hash covers exactly the bytes that were used.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use super::ahead::ReadAhead;
use super::packed::{Compression, UnsupportedKind, decompressed};
use super::{file_name, hex};
use crate::error::{Error, Result};
use crate::job::{InputHash, Job};

const BUFFER_BYTES: usize = 256 << 10;

/// A file being read; a separate thread decompresses and hashes it ahead of the caller.
pub struct InputStream {
    /// The decompressed content.
    pub reader: ReadAhead,
    stored: Arc<StoredFile>,
}

/// What the reading thread learns about the file as stored.
#[derive(Default)]
struct StoredFile {
    /// Whether it is compressed; set before any content is delivered.
    compressed: OnceLock<bool>,
    /// Size in bytes and SHA-256; set at the end of the file.
    digest: OnceLock<(u64, String)>,
}

/// Opens a file of text or data. Its stored bytes are hashed and reported to the job's observer as they are read. If the file cannot
/// be opened, or is packed in a way that drift does not read ([`UnsupportedKind`]), the first read fails. If the job is cancelled, every read
/// fails.
pub fn open(path: &Path, job: &Job) -> InputStream {
    opened(path, job, |prefix| UnsupportedKind::of(prefix).map_or(Ok(()), |kind| Err(kind.error())))
}

/// Opens a file like [`open`], but passes on the bytes of any [`UnsupportedKind`] kind, for readers that look into archives.
pub fn open_any(path: &Path, job: &Job) -> InputStream {
    opened(path, job, |_| Ok(()))
}

fn opened(path: &Path, job: &Job, check: fn(&[u8]) -> io::Result<()>) -> InputStream {
    let stored = Arc::new(StoredFile::default());
    let (path, watching, found) = (path.to_owned(), job.clone(), stored.clone());
    let reader = ReadAhead::new(job, move || {
        let file = File::open(path)?;
        let tally =
            Tally { file, hasher: Some(Sha256::new()), bytes: 0, job: watching, stored: found.clone() };
        let mut bytes = BufReader::with_capacity(BUFFER_BYTES, tally);
        let start = bytes.fill_buf()?;
        check(start)?;
        // The cell is empty: this code runs only once.
        let _ = found.compressed.set(Compression::of(start).is_some());
        decompressed(bytes)
    });
    InputStream { reader, stored }
}

impl InputStream {
    /// Returns whether the file is compressed. The answer is valid only after something was read.
    pub fn compressed(&self) -> bool {
        self.stored.compressed.get().copied().unwrap_or_default()
    }

    /// Reads the rest, so that a damaged end is noticed, and returns the hash of the file under `name`.
    ///
    /// # Errors
    /// If the rest cannot be read, or the job was cancelled.
    pub fn finish(mut self, name: String) -> io::Result<InputHash> {
        drain(&mut self.reader)?;
        let (bytes, sha256) = self.stored.digest.get().cloned().unwrap_or_default();
        Ok(InputHash { name, bytes, sha256 })
    }
}

/// Reads `reader` to its end and discards the bytes.
///
/// # Errors
/// If it cannot be read.
pub fn drain(reader: &mut dyn BufRead) -> io::Result<()> {
    loop {
        let n = reader.fill_buf()?.len();
        if n == 0 {
            return Ok(());
        }
        reader.consume(n);
    }
}

/// Counts and hashes the bytes that pass through.
struct Tally {
    file: File,
    /// Taken when the end is reached.
    hasher: Option<Sha256>,
    bytes: u64,
    job: Job,
    stored: Arc<StoredFile>,
}

impl Read for Tally {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(out)?;
        if n > 0 {
            self.bytes += n as u64;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&out[..n]);
            }
            // Stored bytes are reported, because the stored size is known beforehand.
            self.job.observer().advance(n as u64);
        } else if !out.is_empty()
            && let Some(hasher) = self.hasher.take()
        {
            // The cell is empty: the hasher is taken only once.
            let _ = self.stored.digest.set((self.bytes, hex(&hasher.finalize())));
        }
        Ok(n)
    }
}

/// The whole content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    /// The decompressed bytes.
    pub bytes: Vec<u8>,
    /// The hash of the file as stored.
    pub source: InputHash,
}

/// Reads a whole file, pipe or device, decompressed, of at most `limit` bytes.
///
/// # Errors
/// If it cannot be read, is damaged, is larger than `limit`, or the job was cancelled.
pub fn read_whole(path: &Path, limit: u64, job: &Job) -> Result<FileContent> {
    let fail = |error: io::Error| job.check().err().unwrap_or_else(|| Error::io(path, error));
    let mut opened = open(path, job);
    let mut bytes = Vec::new();
    // Reading one more byte distinguishes a file of exactly this size from a larger one.
    opened.reader.by_ref().take(limit + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(path, limit));
    }
    let source = opened.finish(file_name(path)).map_err(fail)?;
    Ok(FileContent { bytes, source })
}

/// Reads a whole regular file as stored, of at most `limit` bytes, on the calling thread. `name` becomes the name in its hash.
///
/// # Errors
/// If it cannot be read, or is larger than `limit`.
pub fn read_small(path: &Path, limit: u64, name: String, job: &Job) -> io::Result<FileContent> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file grew while it was read"));
    }
    job.observer().advance(bytes.len() as u64);
    let source = InputHash { name, bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(&bytes)) };
    Ok(FileContent { bytes, source })
}

/// Returns the decompressed bytes of a file, at most `limit`. Reading cannot be cancelled, and no hash is returned.
///
/// # Errors
/// As [`read_whole`].
pub fn read_to_limit(path: &Path, limit: u64) -> Result<Vec<u8>> {
    read_whole(path, limit, &Job::default()).map(|whole| whole.bytes)
}

/// Returns the name, size and SHA-256 of a file's stored bytes, for files that are read at offsets, such as weights.
///
/// # Errors
/// If it cannot be read, or the job was cancelled.
pub fn hash_file(path: &Path, job: &Job) -> Result<InputHash> {
    let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
    let (mut hasher, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        job.check()?;
        let n = file.read(&mut buffer).map_err(|e| Error::io(path, e))?;
        if n == 0 {
            return Ok(InputHash { name: file_name(path), bytes, sha256: hex(&hasher.finalize()) });
        }
        hasher.update(&buffer[..n]);
        bytes += n as u64;
    }
}

/// Returns the error for a file that is larger than any of its kind.
pub fn too_large(place: impl AsRef<Path>, limit: u64) -> Error {
    let problem = format!("larger than {} MiB", limit >> 20);
    Error::input(place.as_ref().display(), problem, "check that this is the right file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hashed_is_what_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some");
        std::fs::write(&path, b"abc").unwrap();
        let whole = read_whole(&path, 3, &Job::default()).unwrap();
        assert_eq!((&*whole.bytes, whole.source.bytes, &*whole.source.name), (&b"abc"[..], 3, "some"));
        assert!(whole.source.sha256.starts_with("ba7816bf"));
        assert!(read_whole(&path, 2, &Job::default()).unwrap_err().to_string().contains("larger than 0 MiB"));
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_hashed_as_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, b"abc").unwrap()
        });
        let whole = read_whole(&path, 10, &Job::default()).unwrap();
        writer.join().unwrap();
        assert!(whole.source.sha256.starts_with("ba7816bf"));
    }

    #[test]
    fn a_cancelled_job_ends_an_endless_read() {
        let cancelled = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let job = Job::new(Arc::new(crate::job::SilentObserver), cancelled);
        let outcome = read_whole(Path::new("/dev/zero"), u64::MAX - 1, &job);
        assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
    }
}
