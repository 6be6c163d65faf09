//! Conversions between rows of `f32` and candle tensors on the CPU, for products.

use std::ops::{Deref, Range};

use candle_core::{CpuStorage, Device, Result, Storage, StorageRef, Tensor};

/// Returns a matrix with rows of `columns` numbers, without a copy.
///
/// # Errors
/// If the last row is incomplete.
pub(super) fn matrix(values: Vec<f32>, columns: usize) -> Result<Tensor> {
    let rows = values.len() / columns;
    Tensor::from_vec(values, (rows, columns), &Device::Cpu)
}

/// Returns a part of a matrix, without a copy.
///
/// # Errors
/// If the part exceeds the matrix.
pub(super) fn part(matrix: &Tensor, rows: Range<usize>, columns: Range<usize>) -> Result<Tensor> {
    matrix.narrow(0, rows.start, rows.len())?.narrow(1, columns.start, columns.len())
}

/// The values of a contiguous tensor, in place.
pub(super) struct Values<'t> {
    storage: StorageRef<'t>,
    range: Range<usize>,
}

/// Returns the values of a contiguous `f32` tensor on the CPU.
///
/// # Errors
/// If the tensor is not contiguous, not `f32`, or not on the CPU.
pub(super) fn values(tensor: &Tensor) -> Result<Values<'_>> {
    let (storage, layout) = tensor.storage_and_layout();
    let range = layout.contiguous_offsets().map(|(start, end)| start..end);
    match (&*storage, range) {
        (Storage::Cpu(CpuStorage::F32(_)), Some(range)) => Ok(Values { storage, range }),
        _ => Err(candle_core::Error::Msg("a contiguous f32 tensor on the CPU was expected".into())),
    }
}

impl Deref for Values<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &*self.storage {
            Storage::Cpu(CpuStorage::F32(values)) => &values[self.range.clone()],
            // `values` returns no other variant.
            _ => &[],
        }
    }
}
