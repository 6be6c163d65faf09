//! What the nodes of all B-trees of version 1 have in common.
//!
//! Source: HDF5 File Format Specification 3.0, section III.A.1.

use std::collections::HashMap;

use super::blocks::UNDEFINED;
use super::damaged::{Checked, bad};
use crate::corpus::pickle::cursor::Cursor;

/// How deep trees are: 32 levels of two entries would be more than any file.
const MAX_LEVELS: u8 = 32;

/// The nodes met so far on a walk from left to right. Neighbours name each other, and libhdf5 follows them.
#[derive(Default)]
pub(super) struct Neighbours {
    /// By level, the last node and the one that it says is next.
    last: HashMap<u8, (u64, u64)>,
}

impl Neighbours {
    /// Reads the beginning of the node at an address: gives its level and how many entries it has, of those that it has
    /// `room` for. `of` is the type of tree, `level` what the parent says.
    pub(super) fn node(
        &mut self,
        cursor: &mut Cursor<'_>,
        address: u64,
        of: u8,
        level: Option<u8>,
        room: u64,
    ) -> Checked<(u8, u16)> {
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
    pub(super) fn finish(self) -> Checked<()> {
        if self.last.values().all(|&(_, right)| right == UNDEFINED) {
            return Ok(());
        }
        bad("a B-tree whose last node has a successor")
    }
}
