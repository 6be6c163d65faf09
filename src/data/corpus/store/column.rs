//! One growing dataset of the store, written chunk by chunk.

use rust_hdf5::{H5Dataset, H5File};

use super::compress::Chunk;
use super::layout::{CHUNK_BYTES, DEFLATE_LEVEL, Field};

/// A dataset that grows by whole rows, and its unfinished chunk.
pub(super) struct Column {
    field: Field,
    dataset: H5Dataset,
    pending: Vec<u8>,
    chunks: usize,
}

impl Column {
    /// Creates an empty, extendible, chunked dataset with shuffle and deflate; its group exists.
    pub(super) fn create(file: &H5File, field: Field) -> rust_hdf5::Result<Self> {
        let dataset = match (field.element, field.width) {
            (4, 3) => create::<i32>(file, field),
            (4, _) => create::<u32>(file, field),
            (8, _) => create::<u64>(file, field),
            _ => create::<u8>(file, field),
        }?;
        Ok(Column { field, dataset, pending: Vec::new(), chunks: 0 })
    }

    /// Returns the number of rows so far.
    pub(super) fn rows(&self) -> usize {
        self.chunks * self.field.chunk_rows() + self.pending.len() / (self.field.element * self.field.width)
    }

    /// Moves as many of `bytes` as fit into the pending chunk. Returns the chunk if it is full.
    pub(super) fn fill(&mut self, bytes: &mut &[u8]) -> Option<Chunk> {
        if self.pending.capacity() == 0 {
            // Small stores stay small: the first chunk grows as it fills, while later chunks are certain to be needed in full.
            let capacity = if self.chunks == 0 { 4096 } else { CHUNK_BYTES };
            self.pending.reserve_exact(capacity);
        }
        let (now, later) = bytes.split_at(bytes.len().min(CHUNK_BYTES - self.pending.len()));
        self.pending.extend_from_slice(now);
        *bytes = later;
        (self.pending.len() == CHUNK_BYTES).then(|| self.chunk())
    }

    /// Returns the last, unfinished chunk, padded with zeros; `None` if there is none.
    pub(super) fn last(&mut self) -> Option<Chunk> {
        if self.pending.is_empty() {
            return None;
        }
        self.pending.resize(CHUNK_BYTES, 0);
        Some(self.chunk())
    }

    fn chunk(&mut self) -> Chunk {
        let (Field { column, element, .. }, bytes) = (self.field, std::mem::take(&mut self.pending));
        let chunk = Chunk { column, index: self.chunks, element, bytes };
        self.chunks += 1;
        chunk
    }

    /// Writes a compressed chunk.
    pub(super) fn write(&self, chunk: &Chunk) -> rust_hdf5::Result<()> {
        self.dataset.write_chunk_raw(chunk.index, &chunk.bytes, 0)
    }

    /// Sets the dataset's extent to the number of valid rows, without the padding.
    pub(super) fn set_rows(&self, rows: usize) -> rust_hdf5::Result<()> {
        self.dataset.set_extent(&shape(self.field, rows))
    }
}

fn shape(field: Field, rows: usize) -> Vec<usize> {
    if field.width == 1 { vec![rows] } else { vec![rows, field.width] }
}

fn create<T: rust_hdf5::H5Type>(file: &H5File, field: Field) -> rust_hdf5::Result<H5Dataset> {
    let mut limits: Vec<Option<usize>> = shape(field, 0).into_iter().map(Some).collect();
    // Only the number of rows grows; the width of a row is fixed.
    limits[0] = None;
    file.new_dataset::<T>()
        .shape(shape(field, 0))
        .chunk(&shape(field, field.chunk_rows()))
        .max_shape(&limits)
        .shuffle_deflate(DEFLATE_LEVEL)
        .create(field.path)
}
