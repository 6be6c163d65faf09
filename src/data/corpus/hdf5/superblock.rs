//! The superblock: where an HDF5 file begins and ends, and where its root group is.
//!
//! libhdf5 refuses a file that is shorter than declared. rust-hdf5 continues as long as the needed data exist, so a file that was
//! truncated in an unused dataset would pass.
//!
//! Source: HDF5 File Format Specification 3.0, section II.A (superblock versions 0 to 3).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use rust_hdf5::format::checksum::checksum_metadata;

use super::blocks::UNDEFINED;
use super::damaged::{Hdf5Result, bad};
use crate::corpus::pickle::cursor::Cursor;

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// Enough bytes for a superblock of any version.
const BYTES: u64 = 112;

/// The content of a superblock. Addresses count from [`start`](Self::start).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Superblock {
    /// Its offset in the file, in bytes. Bytes before it belong to the user.
    pub start: u64,
    /// The first address beyond the file.
    pub end: u64,
    /// The header of the root group.
    pub root: u64,
    /// The root group's B-tree and heap, if the superblock repeats them.
    pub root_table: Option<(u64, u64)>,
    /// The header of the extension; [`UNDEFINED`] for none.
    pub extension: u64,
    /// The sizes of B-tree nodes.
    pub nodes: NodeSizes,
}

/// Half of the number of entries that nodes can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeSizes {
    /// For a node of symbols.
    pub symbols: u16,
    /// For a B-tree node of a group.
    pub group: u16,
    /// For a B-tree node of chunks.
    pub chunks: u16,
}

impl Default for NodeSizes {
    fn default() -> Self {
        NodeSizes { symbols: 4, group: 16, chunks: 32 }
    }
}

/// Returns the superblock of a file; `None` if there is none.
pub(super) fn read(file: &mut File) -> io::Result<Option<Hdf5Result<Superblock>>> {
    let len = file.seek(SeekFrom::End(0))?;
    // The superblock may lie at offset 0, 512, 1024, 2048 and so on.
    let starts =
        std::iter::once(0).chain((9..63).map(|power| 1u64 << power)).take_while(|&start| start < len);
    for start in starts {
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        file.by_ref().take(BYTES).read_to_end(&mut block)?;
        if block.starts_with(SIGNATURE) {
            return Ok(Some(parse(&block, start)));
        }
    }
    Ok(None)
}

fn parse(block: &[u8], start: u64) -> Hdf5Result<Superblock> {
    let mut cursor = Cursor::new(block);
    cursor.take(SIGNATURE.len())?;
    match cursor.u8()? {
        version @ (0 | 1) => old(cursor, version, start),
        2 | 3 => new(cursor, block, start),
        version => bad(format!("a superblock of version {version}")),
    }
}

/// Parses versions 0 and 1, which have no checksum.
fn old(mut cursor: Cursor<'_>, version: u8, start: u64) -> Hdf5Result<Superblock> {
    // The versions of the free-space storage, the root's entry and the shared headers are 0 in every file.
    let [free, root_entry, _, shared, offsets, lengths, _] = cursor.array()?;
    if [free, root_entry, shared] != [0; 3] {
        return bad("a superblock of unknown versions");
    }
    check_sizes(offsets, lengths)?;
    let (symbols, group) = (cursor.u16()?, cursor.u16()?);
    let flags = cursor.u32()?;
    let mut nodes = NodeSizes { symbols, group, ..NodeSizes::default() };
    if version == 1 {
        nodes.chunks = cursor.u16()?;
        cursor.u16()?;
    }
    if [nodes.symbols, nodes.group, nodes.chunks].contains(&0) || flags > 3 {
        return bad("a superblock with invalid sizes");
    }
    let [base, _free, end, driver] = [cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?];
    if driver != UNDEFINED {
        return bad("a file in several parts");
    }
    let (_name, root, cached) = (cursor.u64()?, cursor.u64()?, cursor.u32()?);
    cursor.u32()?;
    let root_table = match cached {
        0 => None,
        1 => Some((cursor.u64()?, cursor.u64()?)),
        _ => return bad("a root group of an unknown kind"),
    };
    finish(Superblock { start, end, root, root_table, extension: UNDEFINED, nodes }, base)
}

/// Parses versions 2 and 3.
fn new(mut cursor: Cursor<'_>, block: &[u8], start: u64) -> Hdf5Result<Superblock> {
    let [offsets, lengths, _flags] = cursor.array()?;
    check_sizes(offsets, lengths)?;
    let [base, extension, end, root] = [cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?];
    let computed = checksum_metadata(&block[..cursor.offset()]);
    if cursor.u32()? != computed {
        return bad("a superblock whose checksum is wrong");
    }
    let nodes = NodeSizes::default();
    finish(Superblock { start, end, root, root_table: None, extension, nodes }, base)
}

fn check_sizes(offsets: u8, lengths: u8) -> Hdf5Result<()> {
    if (offsets, lengths) == (8, 8) { Ok(()) } else { bad("addresses that do not have 8 bytes") }
}

/// Refuses a base address other than the superblock's offset or 0. With either, addresses count from the superblock.
fn finish(superblock: Superblock, base: u64) -> Hdf5Result<Superblock> {
    // The base stays 0 if a user block was put in front later: this shifts the superblock and all addresses alike.
    if base == superblock.start || base == 0 {
        return Ok(superblock);
    }
    bad("addresses that do not count from the superblock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_superblock_is_none() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(read(&mut file).unwrap(), None);
        io::Write::write_all(&mut file, b"\x89HDF\r\n\x1a\n\0").unwrap();
        assert!(read(&mut file).unwrap().unwrap().is_err());
    }
}
