//! The parts of a weights file: the front, which is before its tables and can be copied before the new tokens are known, and the
//! rest.

use std::cmp::Reverse;

use safetensors::tensor::TensorInfo;

use super::source::{Shard, SourceModel};
use super::tables::GrownTable;
use crate::design::rows::weights::TokenTable;
use drift_core::checkpoint::{TensorEntry, header_bytes};
use drift_core::{Error, Result};

/// A sequence of bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Bytes of the original file.
    Old {
        /// The offset from the beginning of the file, in bytes.
        offset: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// New bytes.
    New(&'t [u8]),
    /// The row without a token, repeated this many times.
    Repeated(&'t [u8], u64),
}

/// A weights file in the order in which it is written: the largest number types first, as in safetensors, so that all tensors are
/// aligned. Among tensors of one number type, the tables come last.
pub(super) struct OrderedFile<'s> {
    shard: &'s Shard,
    tensors: Vec<(String, &'s TensorInfo, Option<&'s TokenTable>)>,
    /// The number of tensors before the first table.
    before: usize,
    /// The size of its header in bytes, sufficient for tables of any size.
    pub room: usize,
}

impl<'s> OrderedFile<'s> {
    /// Determines the order for one of the model's files.
    ///
    /// # Errors
    /// If the header would be too long.
    pub(super) fn open(shard: &'s Shard, source: &'s SourceModel) -> Result<Self> {
        let tables: Vec<&TokenTable> =
            source.tables().map(|(_, table)| table).filter(|table| table.file == shard.path).collect();
        let tensors = shard.header.in_order().map(|(name, info)| {
            let table = tables.iter().copied().find(|table| table.tensor == name);
            (name, info, table)
        });
        let mut tensors: Vec<_> = tensors.collect();
        tensors.sort_by_key(|(_, info, table)| (Reverse(info.dtype.bitsize()), table.is_some()));
        let before = tensors.iter().take_while(|(.., table)| table.is_none()).count();
        let mut file = OrderedFile { shard, tensors, before, room: 0 };
        // Ids have 32 bits, so no table has more rows, and no header is longer.
        file.room = file.header(u64::from(u32::MAX))?.len();
        Ok(file)
    }

    /// Returns the part before the tables.
    pub(super) fn front(&self) -> Vec<Piece<'static>> {
        let mut pieces = Vec::new();
        self.tensors[..self.before].iter().for_each(|(_, info, _)| self.add(&mut pieces, info));
        pieces
    }

    /// Returns the tables with their new rows, and everything after the first table.
    pub(super) fn rest<'t>(&self, grown: &'t [GrownTable<'_>]) -> Vec<Piece<'t>> {
        let mut pieces = Vec::new();
        for (_, info, table) in &self.tensors[self.before..] {
            match table.and_then(|table| grown.iter().find(|grown| grown.table == table)) {
                Some(grown) => with_rows(&mut pieces, grown),
                None => self.add(&mut pieces, info),
            }
        }
        pieces
    }

    /// Returns the length and header of the file if its tables have `rows` rows.
    ///
    /// # Errors
    /// If the header would be too long.
    pub(super) fn header(&self, rows: u64) -> Result<Vec<u8>> {
        let metadata = self.shard.header.tensors.metadata().as_ref();
        header_bytes(metadata, &self.entries(rows), self.room)
            .map_err(|problem| Error::input(self.shard.path.display(), problem, ""))
    }

    /// Returns the size of its tensors in bytes if its tables have `rows` rows.
    pub(super) fn tensor_bytes(&self, rows: u64) -> u64 {
        self.entries(rows).iter().map(|entry| entry.bytes).sum()
    }

    fn entries(&self, rows: u64) -> Vec<TensorEntry> {
        let entries = self.tensors.iter().map(|(name, info, table)| {
            let (start, end) = info.data_offsets;
            let (shape, bytes) = match table {
                Some(table) => (table.shape(rows as usize), rows * table.row_bytes() as u64),
                None => (info.shape.clone(), (end - start) as u64),
            };
            TensorEntry { name: name.clone(), dtype: info.dtype, shape, bytes }
        });
        entries.collect()
    }

    fn add(&self, pieces: &mut Vec<Piece<'_>>, info: &TensorInfo) {
        let (start, end) = info.data_offsets;
        add(pieces, self.shard.header.data_start + start as u64, (end - start) as u64);
    }
}

/// Adds old bytes; extends the previous piece if they directly follow it.
fn add(pieces: &mut Vec<Piece<'_>>, start: u64, length: u64) {
    match pieces.last_mut() {
        _ if length == 0 => {}
        // Adjacent runs are joined, so that most of a model is copied in large pieces.
        Some(Piece::Old { offset, bytes }) if *offset + *bytes == start => *bytes += length,
        _ => pieces.push(Piece::Old { offset: start, bytes: length }),
    }
}

/// Adds a table: the old rows, the rows of new tokens in place, and rows without a token in the gaps after the old ones.
fn with_rows<'t>(pieces: &mut Vec<Piece<'t>>, grown: &'t GrownTable<'_>) {
    let mut next = 0;
    for (id, range) in &grown.made {
        add_old_rows(pieces, grown, next..u64::from(*id));
        pieces.push(Piece::New(&grown.bytes[range.clone()]));
        next = u64::from(*id) + 1;
    }
    add_old_rows(pieces, grown, next..grown.rows);
}

/// Adds rows without new tokens: old rows as far as they exist, then the row without a token.
fn add_old_rows<'t>(pieces: &mut Vec<Piece<'t>>, grown: &'t GrownTable<'_>, rows: std::ops::Range<u64>) {
    let (table, length) = (grown.table, grown.table.row_bytes() as u64);
    let old = rows.end.min(table.rows).saturating_sub(rows.start);
    add(pieces, table.offset + rows.start * length, old * length);
    let unused = rows.end - (rows.start + old);
    if unused > 0 {
        pieces.push(Piece::Repeated(&grown.unused, unused));
    }
}
