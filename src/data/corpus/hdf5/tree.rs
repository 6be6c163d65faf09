//! The common part of all version 1 B-tree nodes.
//!
//! Source: HDF5 File Format Specification 3.0, section III.A.1.

use std::collections::HashMap;

use super::blocks::UNDEFINED;
use super::damaged::{Hdf5Result, bad};
use crate::corpus::pickle::cursor::Cursor;

/// The largest depth of a tree: 32 levels of two entries exceed any file.
const MAX_LEVELS: u8 = 32;

/// The nodes seen so far on a walk from left to right. Neighbours refer to each other, and libhdf5 follows these references.
#[derive(Default)]
pub(super) struct Neighbours {
    /// By level, the last node and the one that it names as next.
    last: HashMap<u8, (u64, u64)>,
}

impl Neighbours {
    /// Reads the beginning of the node at an address, and returns its level and its number of entries, which must not exceed
    /// `room`. `of` is the type of the tree, `level` the level that the parent implies.
    pub(super) fn node(
        &mut self,
        cursor: &mut Cursor<'_>,
        address: u64,
        of: u8,
        level: Option<u8>,
        room: u64,
    ) -> Hdf5Result<(u8, u16)> {
        let (signature, node, found) = (cursor.array::<4>()?, cursor.u8()?, cursor.u8()?);
        let is_level = found <= MAX_LEVELS && level.is_none_or(|level| level == found);
        if signature != *b"TREE" || node != of || !is_level {
            return bad("no B-tree node");
        }
        let (entries, left, right) = (cursor.u16()?, cursor.u64()?, cursor.u64()?);
        if u64::from(entries) > room {
            return bad("a B-tree node with more entries than it has room for");
        }
        if self.last.insert(found, (address, right)).unwrap_or((UNDEFINED, address)) != (left, address) {
            return bad("B-tree nodes whose sibling links disagree");
        }
        Ok((found, entries))
    }

    /// Checks that each level has ended.
    pub(super) fn finish(self) -> Hdf5Result<()> {
        if self.last.values().all(|&(_, right)| right == UNDEFINED) {
            return Ok(());
        }
        bad("a B-tree whose last node has a successor")
    }
}
