//! Reads one dataset of a store from front to back, each chunk once.

use rust_hdf5::{H5Dataset, H5Type};

use super::{Container, is_integer};
use crate::corpus::store::layout::Field;
use drift_core::error::Result;

/// Opens a dataset of the store, and checks its type and shape. Also returns the number of rows.
pub(super) fn open<T: H5Type>(container: &Container<'_>, field: Field) -> Result<(H5Dataset, usize)> {
    let dataset = container.open(field.path)?;
    let datatype = dataset.datatype().map_err(|e| container.unreadable(&e))?;
    // Of the store's types, only the coordinates are signed.
    if !is_integer(&datatype, field.element, field.width == 3) || T::element_size() != field.element {
        return Err(container.inconsistent(field.path, "not of the type that the schema gives"));
    }
    match (dataset.shape().as_slice(), field.width) {
        (&[rows], 1) | (&[rows, 3], 3) => Ok((dataset, rows)),
        (shape, _) => {
            let problem = format!("shape {shape:?} is not what the schema gives");
            Err(container.inconsistent(field.path, problem))
        }
    }
}

/// Rows `start..start + rows` of a dataset.
pub(super) fn slice<T: H5Type>(
    container: &Container<'_>,
    field: Field,
    dataset: &H5Dataset,
    start: usize,
    rows: usize,
) -> Result<Vec<T>> {
    container.check_chunks(dataset, field.path, start, rows)?;
    let values = match field.width {
        1 => dataset.read_slice(&[start], &[rows]),
        width => dataset.read_slice(&[start, 0], &[rows, width]),
    };
    values.map_err(|e| container.unreadable(&e))
}

/// A dataset and the position of reading.
pub(super) struct Stream<'a, T> {
    container: &'a Container<'a>,
    field: Field,
    dataset: H5Dataset,
    rows: usize,
    /// The next row to read from the file.
    next: usize,
    /// Elements that were read and not yet taken; they start at `start`.
    buffer: Vec<T>,
    start: usize,
}

impl<'a, T: H5Type> Stream<'a, T> {
    /// Opens the dataset with [`open`].
    pub(super) fn open(container: &'a Container<'a>, field: Field) -> Result<Self> {
        let (dataset, rows) = open::<T>(container, field)?;
        Ok(Stream { container, field, dataset, rows, next: 0, buffer: Vec::new(), start: 0 })
    }

    /// The number of rows of the dataset.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The elements of the next `rows` rows.
    ///
    /// # Errors
    /// If the file has fewer rows, or they cannot be read.
    pub(super) fn take(&mut self, rows: usize) -> Result<&[T]> {
        let wanted = rows * self.field.width;
        while self.buffer.len() - self.start < wanted {
            let rows = self.field.chunk_rows().min(self.rows - self.next);
            if rows == 0 {
                return Err(self.container.inconsistent(self.field.path, "has fewer rows than others say"));
            }
            let more = slice(self.container, self.field, &self.dataset, self.next, rows)?;
            self.next += rows;
            // Taken elements are dropped only when more are read, so that data is not moved for each row.
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.extend_from_slice(&more);
        }
        let taken = &self.buffer[self.start..self.start + wanted];
        self.start += wanted;
        Ok(taken)
    }
}
