//! What the numbers of a file of weights are put together from.

use std::cmp::Reverse;

use super::source::Shard;
use super::tables::GrownTable;
use crate::checkpoint::{TensorEntry, header_bytes};
use crate::error::{Error, Result};

/// A run of bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Of the file as it was, from an offset on.
    Old {
        /// From the beginning of the file, in bytes.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// New ones.
    New(&'t [u8]),
    /// The same ones, so many times.
    Repeated(&'t [u8], u64),
}

/// The beginning of a file, and its pieces behind that.
pub(super) struct PlannedFile<'t> {
    /// Length and header.
    pub header: Vec<u8>,
    /// The numbers.
    pub pieces: Vec<Piece<'t>>,
    /// The bytes of its tensors.
    pub tensor_bytes: u64,
}

impl<'t> PlannedFile<'t> {
    /// A file of weights with its tables grown. The largest numbers come first, as safetensors has them, so that all are
    /// aligned.
    ///
    /// # Errors
    /// If the header would be too long.
    pub(super) fn of(shard: &Shard, grown: &'t [GrownTable<'_>]) -> Result<Self> {
        let mut tensors: Vec<_> = shard.header.in_order().collect();
        tensors.sort_by_key(|(_, info)| Reverse(info.dtype.bitsize()));
        let mut entries = Vec::new();
        let mut pieces = Vec::new();
        for (name, info) in tensors {
            let table =
                grown.iter().find(|grown| grown.table.tensor == name && grown.table.file == shard.path);
            let (start, end) = info.data_offsets;
            let mut entry = TensorEntry {
                name,
                dtype: info.dtype,
                shape: info.shape.clone(),
                bytes: (end - start) as u64,
            };
            match table {
                None => add(&mut pieces, shard.header.data_start + start as u64, entry.bytes),
                Some(grown) => {
                    entry.shape[0] = grown.rows as usize;
                    entry.bytes = grown.rows * grown.table.row_bytes() as u64;
                    with_rows(&mut pieces, grown);
                }
            }
            entries.push(entry);
        }
        let header = header_bytes(shard.header.tensors.metadata().as_ref(), &entries)
            .map_err(|problem| Error::input(shard.path.display(), problem, ""))?;
        let tensor_bytes = entries.iter().map(|entry| entry.bytes).sum();
        Ok(PlannedFile { header, pieces, tensor_bytes })
    }

    /// The bytes of the whole file.
    pub(super) fn bytes(&self) -> u64 {
        self.header.len() as u64 + self.tensor_bytes
    }
}

/// Adds old bytes, to those before them where they lie behind them.
fn add(pieces: &mut Vec<Piece<'_>>, start: u64, length: u64) {
    match pieces.last_mut() {
        _ if length == 0 => {}
        Some(Piece::Old { offset, bytes }) if *offset + *bytes == start => *bytes += length,
        _ => pieces.push(Piece::Old { offset: start, bytes: length }),
    }
}

/// A table: old rows, but for those of new tokens; behind them new ones, and between those the row of no token.
fn with_rows<'t>(pieces: &mut Vec<Piece<'t>>, grown: &'t GrownTable<'_>) {
    let (table, length) = (grown.table, grown.table.row_bytes() as u64);
    let mut next = 0;
    let until = |row: u64, next: u64, pieces: &mut Vec<Piece<'t>>| {
        let old = row.min(table.rows).saturating_sub(next);
        add(pieces, table.offset + next * length, old * length);
        let unused = row - (next + old);
        if unused > 0 {
            pieces.push(Piece::Repeated(&grown.unused, unused));
        }
    };
    for (id, range) in &grown.made {
        until(u64::from(*id), next, pieces);
        pieces.push(Piece::New(&grown.bytes[range.clone()]));
        next = u64::from(*id) + 1;
    }
    until(grown.rows, next, pieces);
}
