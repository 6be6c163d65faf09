//! Reads blocks of an HDF5 file by address. A block is read only if it lies completely inside the file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use rust_hdf5::format::{BlockReader, FormatError, FormatResult};

use super::damaged::{Hdf5Result, bad};

/// The number of bytes read at a time, so that headers of neighbours are read together.
const WINDOW_BYTES: u64 = 16 << 10;

/// The largest block of metadata, in bytes: enough for the names of some million links.
const MAX_BLOCK_BYTES: u64 = 64 << 20;

/// The address that means "none".
pub(super) const UNDEFINED: u64 = u64::MAX;

/// The bytes of a file between the superblock and the declared end.
pub(super) struct Blocks {
    file: File,
    /// The offset at which addresses start, and the first address beyond the end.
    start: u64,
    end: u64,
    window_at: u64,
    window: Vec<u8>,
}

impl Blocks {
    /// Addresses count from the offset `start` in the file; `end` is the first address outside of it.
    pub(super) fn new(file: File, start: u64, end: u64) -> Self {
        Blocks { file, start, end, window_at: 0, window: Vec::new() }
    }

    /// Refuses a block that does not lie inside the file.
    pub(super) fn check(&self, address: u64, len: u64) -> Hdf5Result<()> {
        match address.checked_add(len) {
            Some(end) if end <= self.end => Ok(()),
            _ if address == UNDEFINED => bad("an undefined address"),
            _ => bad(format!("the file ends before byte {}", address.saturating_add(len))),
        }
    }

    /// Reads a block of metadata.
    pub(super) fn read(&mut self, address: u64, len: u64) -> Hdf5Result<Vec<u8>> {
        self.check(address, len)?;
        if len > MAX_BLOCK_BYTES {
            return bad(format!("a block of {len} bytes; at most {} MiB are read", MAX_BLOCK_BYTES >> 20));
        }
        if len > WINDOW_BYTES {
            return self.read_file(address, len);
        }
        let inside = |at: u64, window: &[u8]| address >= at && address + len <= at + window.len() as u64;
        if !inside(self.window_at, &self.window) {
            self.window = self.read_file(address, WINDOW_BYTES.min(self.end - address))?;
            self.window_at = address;
        }
        // The offset is below the size of the window, so it fits into usize.
        let first = (address - self.window_at) as usize;
        Ok(self.window[first..first + len as usize].to_vec())
    }

    fn read_file(&mut self, address: u64, len: u64) -> Hdf5Result<Vec<u8>> {
        let Some(at) = self.start.checked_add(address) else { return bad("an address beyond any file") };
        self.file.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        self.file.by_ref().take(len).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != len { bad("the file ends early") } else { Ok(bytes) }
    }
}

impl BlockReader for Blocks {
    fn read_block(&mut self, offset: u64, len: usize) -> FormatResult<Vec<u8>> {
        // Returning fewer bytes is allowed only at the end of the file; rust-hdf5 checks this itself.
        let len = (len as u64).min(self.end.saturating_sub(offset));
        self.read(offset, len).map_err(|e| FormatError::InvalidData(e.0))
    }
}
