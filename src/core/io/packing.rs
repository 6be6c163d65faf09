//! Outputs that are compressed if their name says so.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::AtomicFile;
use crate::error::{Error, Result};

/// An output file, compressed by gzip if its name ends in `.gz`, and by zstd if it ends in `.zst`.
pub struct PackedFile {
    named: PathBuf,
    writer: Writer,
}

enum Writer {
    Plain(AtomicFile),
    Gzip(flate2::write::GzEncoder<AtomicFile>),
    Zstd(zstd::stream::write::Encoder<'static, AtomicFile>),
}

impl PackedFile {
    /// Starts an output; the folder must exist.
    ///
    /// # Errors
    /// As [`AtomicFile::create`].
    pub fn create(named: &Path) -> Result<Self> {
        let file = AtomicFile::create(named)?;
        let writer = match named.extension().and_then(|end| end.to_str()) {
            Some("gz") => Writer::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
            Some("zst") => {
                let encoder = zstd::stream::write::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL);
                Writer::Zstd(encoder.map_err(|e| Error::io(named, e))?)
            }
            _ => Writer::Plain(file),
        };
        Ok(PackedFile { named: named.to_owned(), writer })
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.writer {
            Writer::Plain(file) => file.write_all(bytes),
            Writer::Gzip(encoder) => encoder.write_all(bytes),
            Writer::Zstd(encoder) => encoder.write_all(bytes),
        };
        written.map_err(|e| Error::io(&self.named, e))
    }

    /// Returns the complete file, before it gets its name.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn finish(self) -> Result<AtomicFile> {
        let file = match self.writer {
            Writer::Plain(file) => Ok(file),
            Writer::Gzip(encoder) => encoder.finish(),
            Writer::Zstd(encoder) => encoder.finish(),
        };
        file.map_err(|e| Error::io(&self.named, e))
    }
}

/// Compresses bytes by zstd, quickly.
///
/// # Errors
/// If memory is short.
pub fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, 1)
}

/// Writes what [`pack`] compressed to `out`.
///
/// # Errors
/// If the bytes are damaged, or `out` fails.
pub fn unpack(packed: &[u8], out: &mut dyn Write) -> io::Result<()> {
    zstd::stream::copy_decode(packed, out)
}
