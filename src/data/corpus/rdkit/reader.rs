//! Reads the values that the parts of a molecule consist of.

use super::{RdkitError, Version};
use crate::corpus::pickle::cursor::Cursor;

pub(super) type Result<T> = std::result::Result<T, RdkitError>;

/// A position in a molecule of a known version.
pub(super) struct Reader<'c, 'a> {
    pub(super) cursor: &'c mut Cursor<'a>,
    pub(super) version: Version,
    /// Whether indices take four bytes instead of one.
    pub(super) wide: bool,
    /// The number of molecules around this one, if it is part of recursive queries.
    pub(super) depth: usize,
}

impl<'a> Reader<'_, 'a> {
    /// Returns whether the molecule's format version is this one or newer.
    pub(super) fn since(&self, major: i32, minor: i32, patch: i32) -> bool {
        self.version >= (major, minor, patch)
    }

    pub(super) fn malformed(&self, what: &str) -> RdkitError {
        RdkitError(format!("RDKit molecule is malformed at byte {}: {what}", self.cursor.offset()))
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(self.cursor.u8()?)
    }

    pub(super) fn i32(&mut self) -> Result<i32> {
        Ok(self.cursor.i32()?)
    }

    /// Reads a tag that must be `tag`.
    pub(super) fn expect(&mut self, tag: u8, what: &str) -> Result<()> {
        if self.cursor.peek().is_some_and(|found| found != tag) {
            return Err(self.malformed(what));
        }
        self.u8().map(drop)
    }

    /// Consumes the next byte if it is `tag`; returns whether it was.
    pub(super) fn accept(&mut self, tag: u8) -> Result<bool> {
        let found = self.cursor.peek() == Some(tag);
        if found {
            self.u8()?;
        }
        Ok(found)
    }

    /// Reads an index or a count in the molecule's index width.
    pub(super) fn index(&mut self) -> Result<u32> {
        if !self.wide {
            return Ok(self.u8()?.into());
        }
        u32::try_from(self.i32()?).map_err(|_| self.malformed("a negative index"))
    }

    /// Reads a count of four bytes.
    pub(super) fn count(&mut self) -> Result<usize> {
        usize::try_from(self.i32()?).map_err(|_| self.malformed("a negative count"))
    }

    /// Reads a string, which may contain any bytes.
    pub(super) fn string(&mut self) -> Result<&'a [u8]> {
        let length = self.cursor.u32()?;
        Ok(self.cursor.take_items(length.into(), 1)?)
    }

    /// Skips `count` values of `size` bytes each.
    pub(super) fn skip(&mut self, count: usize, size: usize) -> Result<()> {
        self.cursor.take_items(count as u64, size)?;
        Ok(())
    }

    /// Skips a counted list of indices.
    pub(super) fn skip_indices(&mut self) -> Result<()> {
        let count = self.index()?;
        self.skip(count as usize, if self.wide { 4 } else { 1 })
    }

    /// Skips a part that is preceded by its length in bytes.
    pub(super) fn skip_frame(&mut self) -> Result<()> {
        let length = self.count()?;
        self.skip(length, 1)
    }

    /// Returns the number of items to allocate for, if the file declares `count` items and each takes at least `size` bytes.
    pub(super) fn capacity(&self, count: usize, size: usize) -> usize {
        count.min(self.cursor.remaining() / size)
    }
}
