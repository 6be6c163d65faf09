//! Checks the chunks of a dataset: exactly those of its shape must exist.
//!
//! A missing chunk would be read as fill values: zeros that are not conformers.
//!
//! Source: HDF5 File Format Specification 3.0, section III.A.1 (B-trees of version 1, node type 1).

use super::blocks::Blocks;
use super::damaged::{Hdf5Result, bad};
use super::tree::Neighbours;
use crate::corpus::pickle::cursor::Cursor;

/// The expected chunks of a dataset.
pub(super) struct Grid<'a> {
    /// The number of elements of the dataset, along each axis.
    pub shape: &'a [u64],
    /// The number of elements of a chunk, along each axis.
    pub chunk: &'a [u64],
    /// The size of an element, in bytes.
    pub element: u64,
    /// The number of filters of the dataset. Without filters, chunks have the size of their elements.
    pub filters: usize,
}

impl Grid<'_> {
    /// Returns the number of chunks.
    pub(super) fn count(&self) -> Option<u64> {
        let along = |(&shape, &chunk): (&u64, &u64)| (chunk > 0).then(|| shape.div_ceil(chunk));
        self.shape.iter().zip(self.chunk).map(along).try_fold(1u64, |n, k| n.checked_mul(k?))
    }

    /// Returns the size of a chunk before filters, in bytes.
    fn bytes(&self) -> Option<u64> {
        self.chunk.iter().try_fold(self.element, |n, &k| n.checked_mul(k))
    }
}

/// Checks that the B-tree at an address has all chunks of a grid, and no others.
pub(super) fn check(blocks: &mut Blocks, room: u16, tree: u64, grid: &Grid<'_>) -> Hdf5Result<()> {
    let Some(count) = grid.count() else { return bad("chunks of size 0") };
    if count == 0 {
        return Ok(());
    }
    // The file states half of a node's capacity.
    let (room, neighbours) = (2 * u64::from(room), Neighbours::default());
    let mut walk = Walk { blocks, room, neighbours, grid, last: None, found: 0 };
    walk.node(tree, None)?;
    walk.neighbours.finish()?;
    let found = walk.found;
    if found == count { Ok(()) } else { bad(format!("{found} of {count} chunks are there")) }
}

/// The key of a chunk: the index of its first element along each axis, followed by 0 for the bytes of an element.
type Key = Vec<u64>;

struct Walk<'a> {
    blocks: &'a mut Blocks,
    /// The capacity of a node.
    room: u64,
    neighbours: Neighbours,
    grid: &'a Grid<'a>,
    last: Option<Key>,
    found: u64,
}

impl Walk<'_> {
    fn node(&mut self, address: u64, level: Option<u8>) -> Hdf5Result<()> {
        let key_bytes = 8 + 8 * (self.grid.shape.len() as u64 + 1);
        let bytes = self.blocks.read(address, 24 + self.room * (key_bytes + 8) + key_bytes)?;
        let mut cursor = Cursor::new(&bytes);
        let (node_level, entries) = self.neighbours.node(&mut cursor, address, 1, level, self.room)?;
        let (mut stored, mut mask, mut key) = self.key(&mut cursor)?;
        for _ in 0..entries {
            let child = cursor.u64()?;
            let before = self.last.clone();
            match node_level {
                0 => self.chunk(child, stored, mask, &key)?,
                level => self.node(child, Some(level - 1))?,
            }
            let next = self.key(&mut cursor)?;
            // Lookups of chunks rely on the keys.
            let in_order = before.is_none_or(|before| before < key)
                && self.last.as_ref().is_some_and(|last| *last >= key && *last < next.2);
            if !in_order {
                return bad("a B-tree whose keys do not match its chunks");
            }
            (stored, mask, key) = next;
        }
        Ok(())
    }

    /// Returns the stored size in bytes, the mask of skipped filters, and the position of a chunk.
    fn key(&self, cursor: &mut Cursor<'_>) -> Hdf5Result<(u32, u32, Key)> {
        let (stored, mask) = (cursor.u32()?, cursor.u32()?);
        let mut key = Vec::with_capacity(self.grid.shape.len() + 1);
        for &step in self.grid.chunk.iter().chain([&self.grid.element]) {
            key.push(cursor.u64()?);
            if key.last().is_some_and(|at| at % step != 0) {
                return bad("a chunk that does not begin on a chunk boundary");
            }
        }
        Ok((stored, mask, key))
    }

    fn chunk(&mut self, address: u64, stored: u32, mask: u32, key: &Key) -> Hdf5Result<()> {
        let Grid { shape, chunk, filters, .. } = *self.grid;
        let in_grid = key.last() == Some(&0)
            && key
                .iter()
                .zip(shape.iter().zip(chunk))
                .all(|(&at, (&shape, &chunk))| at < shape && at % chunk == 0);
        if !in_grid {
            return bad("a chunk outside the shape of its dataset");
        }
        if filters == 0 && Some(u64::from(stored)) != self.grid.bytes() || stored == 0 {
            return bad(format!("a chunk of {stored} bytes"));
        }
        if names_more(mask, filters) {
            return bad("a chunk that leaves out filters which its dataset does not have");
        }
        // Only the range is checked; rust-hdf5 reads the data later.
        self.blocks.check(address, stored.into())?;
        self.last = Some(key.clone());
        self.found += 1;
        Ok(())
    }
}

/// Returns whether a mask names filters beyond the first `filters` ones.
fn names_more(mask: u32, filters: usize) -> bool {
    // A dataset may have as many filters as a mask has bits, or more.
    u32::try_from(filters)
        .ok()
        .and_then(|filters| mask.checked_shr(filters))
        .is_some_and(|beyond| beyond != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_name_filters_that_there_are() {
        for filters in 0..32 {
            assert!(names_more(1 << filters, filters) && names_more(u32::MAX, filters), "{filters}");
            assert!(!names_more((1 << filters) - 1, filters), "{filters}");
        }
        for filters in [32, 33, 63, 64, 65, 255, usize::MAX] {
            assert!(!names_more(u32::MAX, filters), "{filters}");
        }
    }
}
