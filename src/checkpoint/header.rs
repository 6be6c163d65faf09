//! The header of a safetensors file: which tensors it holds, and where.
//!
//! The file begins with the length of its header (8 bytes, little-endian) and the header, a JSON object of names, types,
//! shapes and offsets. So what a file of many gigabytes holds is known after its first few kilobytes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::Metadata;

use super::folder::check_plain;
use crate::error::{Error, Result};

/// The longest header that the format allows.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// What a file holds.
#[derive(Debug, Clone)]
pub struct Header {
    /// Where the numbers begin, in bytes.
    pub data_start: u64,
    /// The tensors; their offsets count from [`Header::data_start`].
    pub tensors: Metadata,
}

impl Header {
    /// Reads it.
    ///
    /// # Errors
    /// If the file cannot be read, is not safetensors, or is shorter or longer than its header says.
    pub fn read(path: &Path) -> Result<Self> {
        let refuse = |problem: String| Error::input(path.display(), problem, "give a sound safetensors file");
        check_plain(path)?;
        let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
        let total = file.metadata().map_err(|e| Error::io(path, e))?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|_| refuse("is not safetensors: it has no header".into()))?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER_BYTES.min(total.saturating_sub(8)) {
            return Err(refuse(format!("is not safetensors: a header of {length} bytes does not fit in it")));
        }
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
        let tensors: Metadata = serde_json::from_slice(&bytes)
            .map_err(|e| refuse(format!("is not safetensors: its header is damaged: {e}")))?;
        let expected = 8 + length + tensors.data_len() as u64;
        if total != expected {
            return Err(refuse(format!("has {total} bytes, but its header speaks of {expected}")));
        }
        Ok(Header { data_start: 8 + length, tensors })
    }
}
