//! Files: compression detected by content, read-ahead, hashes, bounded lines, names in tables, and outputs that are either complete or
//! absent.

mod ahead;
mod input;
mod json;
mod lines;
mod output;
mod packed;
mod packing;
mod place;
mod utf16;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub use ahead::{ReadAhead, read_buffered};
pub use input::{
    FileContent, InputStream, drain, hash_file, open, open_any, read_small, read_to_limit, read_whole,
    too_large,
};
pub use json::{BoundedJson, FoldSeed, JsonFold, JsonPart};
pub use lines::{BoundedLine, BoundedLines, LineEnds};
pub use output::{AtomicFile, OutputSet, absolute, write_atomic};
pub(crate) use output::{check_file, check_folder};
pub use packed::{Compression, UnsupportedKind, decompressed, is_zip};
pub use packing::{PackedFile, pack, unpack};
pub(crate) use place::place_in;
pub use place::{FilePlace, parent};

use crate::job::InputHash;

/// Returns a number derived from bytes, the same on every machine: the first 64 bits of the SHA-256 of the concatenated `parts`.
pub fn hash_number(parts: &[&[u8]]) -> u64 {
    let digest = parts.iter().fold(Sha256::new(), |hasher, part| hasher.chain_update(part)).finalize();
    digest.iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Returns the name, size and SHA-256 of bytes in memory.
pub fn hash_bytes(name: &str, bytes: &[u8]) -> InputHash {
    InputHash { name: name.to_owned(), bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(bytes)) }
}

/// Bytes in hexadecimal.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns the last component of a path, for messages and provenance.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The names of some files in tables: the last components of their paths, or the paths themselves where several files have the same.
#[derive(Debug)]
pub struct FileNames {
    repeated: HashSet<String>,
}

impl FileNames {
    /// Looks which names occur twice.
    pub fn new(paths: &[PathBuf]) -> Self {
        let mut seen = HashSet::new();
        let repeated = paths.iter().map(|path| file_name(path)).filter(|name| !seen.insert(name.clone()));
        FileNames { repeated: repeated.collect() }
    }

    /// Returns the name of one of the files.
    pub fn of(&self, path: &Path) -> String {
        let name = file_name(path);
        if self.repeated.contains(&name) { path.display().to_string() } else { name }
    }
}
