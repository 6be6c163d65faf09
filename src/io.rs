//! Files: compression by content, read-ahead, hashes, and outputs that are whole or absent.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::job::{InputHash, Job};

/// The first bytes of a gzip stream.
pub const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

const BLOCK: usize = 1 << 20;

/// A reader over a file, decompressed if its content is gzip (several members too).
///
/// # Errors
/// If the file cannot be opened or its first bytes cannot be read.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    decompressed(BufReader::with_capacity(BLOCK, file)).map_err(|e| Error::io(path, e))
}

/// `inner`, decompressed if it starts like gzip.
pub fn decompressed<R: BufRead + Send + 'static>(mut inner: R) -> io::Result<Box<dyn BufRead + Send>> {
    if inner.fill_buf()?.starts_with(&GZIP_MAGIC) {
        Ok(Box::new(BufReader::with_capacity(BLOCK, MultiGzDecoder::new(inner))))
    } else {
        Ok(Box::new(inner))
    }
}

/// The whole of a file, decompressed, of at most `limit` bytes.
///
/// # Errors
/// If it cannot be read or is larger.
pub fn read_to_limit(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
    if bytes.len() as u64 > limit {
        let problem = format!("larger than {} MiB", limit >> 20);
        return Err(Error::input(path.display(), problem, "is this the right file?"));
    }
    Ok(bytes)
}

/// Name, size and SHA-256 of a file's bytes as stored.
///
/// # Errors
/// If it cannot be read.
pub fn hash_file(path: &Path) -> Result<InputHash> {
    let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut hasher = Sha256::new();
    let bytes = io::copy(&mut file, &mut hasher).map_err(|e| Error::io(path, e))?;
    Ok(InputHash { name: file_name(path), bytes, sha256: hex(&hasher.finalize()) })
}

/// A number that a text stands for, the same on every machine: the first 64 bits of the SHA-256 of some bytes in a row.
pub fn hash_number(parts: &[&[u8]]) -> u64 {
    let digest = parts.iter().fold(Sha256::new(), |hasher, part| hasher.chain_update(part)).finalize();
    digest.iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Name, size and SHA-256 of bytes in memory.
pub fn hash_bytes(name: &str, bytes: &[u8]) -> InputHash {
    InputHash { name: name.to_owned(), bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(bytes)) }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

/// The last component of a path, for messages and provenance.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Reads on a thread of its own, a few blocks ahead, so that decompression and parsing overlap, and so that a source
/// which keeps its reader waiting (a pipe, a terminal) does not keep a cancelled job.
pub struct ReadAhead {
    blocks: Receiver<io::Result<Vec<u8>>>,
    job: Job,
    current: Vec<u8>,
    at: usize,
}

/// How often a job that waits for input looks whether it was cancelled.
const PATIENCE: Duration = Duration::from_millis(50);

impl ReadAhead {
    /// Starts the thread, which opens the source and ends with it, at an error, or when this is dropped.
    pub fn new<R: Read>(job: &Job, open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Self {
        let (send, blocks) = sync_channel(4);
        std::thread::spawn(move || {
            // An error of sending: nobody reads any more.
            let _ = match open() {
                Ok(inner) => send_blocks(inner, &send),
                Err(error) => send.send(Err(error)).map_err(drop),
            };
        });
        ReadAhead { blocks, job: job.clone(), current: Vec::new(), at: 0 }
    }
}

/// Sends what `inner` holds, then an empty block or an error.
fn send_blocks(mut inner: impl Read, send: &SyncSender<io::Result<Vec<u8>>>) -> Result<(), ()> {
    loop {
        let mut block = Vec::with_capacity(BLOCK);
        let outcome = inner.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        let is_last = block.is_empty();
        if outcome.is_ok() || !is_last {
            // What came before an error is still good.
            send.send(Ok(block)).map_err(drop)?;
        }
        if let Err(error) = outcome {
            return send.send(Err(error)).map_err(drop);
        }
        if is_last {
            return Ok(());
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let n = available.len().min(out.len());
        out[..n].copy_from_slice(&available[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for ReadAhead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.at == self.current.len() {
            match self.blocks.recv_timeout(PATIENCE) {
                Ok(Ok(block)) if block.is_empty() => return Ok(&[]),
                Ok(Ok(block)) => (self.current, self.at) = (block, 0),
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => self.job.check().map_err(io::Error::other)?,
                // The thread is gone: the end was already read.
                Err(RecvTimeoutError::Disconnected) => return Ok(&[]),
            }
        }
        Ok(&self.current[self.at..])
    }

    fn consume(&mut self, n: usize) {
        self.at += n;
    }
}

/// An output that appears under its name only when whole: written beside it, then renamed.
pub struct AtomicFile {
    target: PathBuf,
    file: tempfile::NamedTempFile,
}

impl AtomicFile {
    /// Starts an output; the folder must exist.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn create(target: &Path) -> Result<Self> {
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if target.is_dir() {
            return Err(Error::input(target.display(), "is a folder", "give the name of a file"));
        }
        if target.exists() && !target.is_file() {
            // Renaming over it would replace the pipe or device itself, /dev/null too.
            let problem = "is a pipe or device, not a file";
            return Err(Error::input(target.display(), problem, "give the name of a file"));
        }
        if !folder.is_dir() {
            let problem = format!("there is no folder {}", folder.display());
            return Err(Error::input(target.display(), problem, "make it first"));
        }
        let file = tempfile::Builder::new()
            .prefix(".drift-")
            .tempfile_in(folder)
            // The kind alone: the whole error names the temporary file.
            .map_err(|e| Error::input(target.display(), format!("cannot be written: {}", e.kind()), ""))?;
        Ok(AtomicFile { target: target.to_owned(), file })
    }

    /// The path of the unfinished file, for writers that want a path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Adds `bytes`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.target, e))
    }

    /// Renames the finished file to its name, replacing what was there.
    ///
    /// # Errors
    /// If the system refuses; the old file is then untouched.
    pub fn commit(self) -> Result<()> {
        let mode = self.file.as_file().metadata().ok();
        #[cfg(unix)]
        if mode.is_some() {
            // A temporary file is private; a result is as readable as any file the user makes.
            use std::os::unix::fs::PermissionsExt;
            let permissions = std::fs::Permissions::from_mode(0o644);
            self.file.as_file().set_permissions(permissions).map_err(|e| Error::io(&self.target, e))?;
        }
        self.file.persist(&self.target).map_err(|e| Error::io(&self.target, e.error))?;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes `bytes` to `target`, whole or not at all.
///
/// # Errors
/// If the folder cannot be written to.
pub fn write_atomic(target: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(target)?;
    file.put(bytes)?;
    file.commit()
}

/// Writes several files; all of them or, if one cannot be written, none.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_all_atomic(files: &[(PathBuf, String)]) -> Result<()> {
    let write = |(path, text): &(PathBuf, String)| {
        let mut file = AtomicFile::create(path)?;
        file.put(text.as_bytes()).map(|()| file)
    };
    let written = files.iter().map(write).collect::<Result<Vec<_>>>()?;
    written.into_iter().try_for_each(AtomicFile::commit)
}
