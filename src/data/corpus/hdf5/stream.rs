//! Reads datasets of a store: rows of one, or one from front to back, each chunk once.

use std::marker::PhantomData;

use rust_hdf5::{H5Dataset, H5Type};

use super::{Container, is_integer};
use crate::corpus::store::layout::Field;
use drift_core::{Error, Result};

/// A dataset of the store, whose type and shape were checked.
pub(super) struct Dataset<'a, T> {
    pub container: &'a Container<'a>,
    field: Field,
    dataset: H5Dataset,
    /// The number of rows.
    pub rows: usize,
    elements: PhantomData<T>,
}

impl<'a, T: H5Type> Dataset<'a, T> {
    /// Opens a dataset of the store, and checks its type and shape.
    pub(super) fn open(container: &'a Container<'a>, field: Field) -> Result<Self> {
        let dataset = container.open(field.path)?;
        let datatype = dataset.datatype().map_err(|e| container.unreadable(&e))?;
        // Of the store's types, only the coordinates are signed.
        if !is_integer(&datatype, field.element, field.width == 3) || T::element_size() != field.element {
            return Err(container.inconsistent(field.path, "not of the type that the schema gives"));
        }
        let rows = match (dataset.shape().as_slice(), field.width) {
            (&[rows], 1) | (&[rows, 3], 3) => rows,
            (shape, _) => {
                let problem = format!("shape {shape:?} is not what the schema gives");
                return Err(container.inconsistent(field.path, problem));
            }
        };
        Ok(Dataset { container, field, dataset, rows, elements: PhantomData })
    }

    /// Rows `start..start + rows`.
    pub(super) fn slice(&self, start: usize, rows: usize) -> Result<Vec<T>> {
        self.container.check_chunks(&self.dataset, self.field.path, start, rows)?;
        let values = match self.field.width {
            1 => self.dataset.read_slice(&[start], &[rows]),
            width => self.dataset.read_slice(&[start, 0], &[rows, width]),
        };
        values.map_err(|e| self.container.unreadable(&e))
    }

    /// Returns the error for content that is inconsistent.
    pub(super) fn inconsistent(&self, problem: impl std::fmt::Display) -> Error {
        self.container.inconsistent(self.field.path, problem)
    }
}

/// A dataset and the position of reading.
pub(super) struct Stream<'a, T> {
    dataset: Dataset<'a, T>,
    /// The next row to read from the file.
    next: usize,
    /// Elements that were read and not yet taken; they start at `start`.
    buffer: Vec<T>,
    start: usize,
}

impl<'a, T: H5Type> Stream<'a, T> {
    /// Opens the dataset.
    pub(super) fn open(container: &'a Container<'a>, field: Field) -> Result<Self> {
        Ok(Stream { dataset: Dataset::open(container, field)?, next: 0, buffer: Vec::new(), start: 0 })
    }

    /// Returns the number of rows of the dataset.
    pub(super) fn rows(&self) -> usize {
        self.dataset.rows
    }

    /// Returns the elements of the next `rows` rows.
    ///
    /// # Errors
    /// If the file has fewer rows, or they cannot be read.
    pub(super) fn take(&mut self, rows: usize) -> Result<&[T]> {
        let wanted = rows * self.dataset.field.width;
        while self.buffer.len() - self.start < wanted {
            let rows = self.dataset.field.chunk_rows().min(self.dataset.rows - self.next);
            if rows == 0 {
                return Err(self.dataset.inconsistent("has fewer rows than others say"));
            }
            let more = self.dataset.slice(self.next, rows)?;
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
