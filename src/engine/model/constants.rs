//! Tensors on the device that candle's operations read in every pass.

use candle_core::{DType, Device, Result, Tensor};

use super::rope::Rope;

/// Tensors on the device that no pass changes.
#[derive(Debug)]
pub(super) struct Constants {
    /// `[positions, dim / 2]`
    pub(super) cos: Tensor,
    /// `[positions, dim / 2]`
    pub(super) sin: Tensor,
    /// The numbers 0, 1, 2, …: `[1, positions]`
    pub(super) columns: Tensor,
    /// `[1, 1]`
    pub(super) zero: Tensor,
    /// `[1, 1]`
    pub(super) minus_infinity: Tensor,
}

impl Constants {
    /// Returns the constants for this number of positions.
    pub(super) fn new(rope: &Rope, positions: usize, dtype: DType, device: &Device) -> Result<Self> {
        let table = |numbers: &[f32]| {
            let numbers = &numbers[..positions * rope.half];
            Tensor::from_slice(numbers, (positions, rope.half), device)?.to_dtype(dtype)
        };
        let scalar = |number: f32| Tensor::full(number, (1, 1), device)?.to_dtype(dtype);
        Ok(Constants {
            cos: table(&rope.cos)?,
            sin: table(&rope.sin)?,
            columns: Tensor::arange(0, positions as u32, device)?.unsqueeze(0)?,
            zero: scalar(0.0)?,
            minus_infinity: scalar(f32::NEG_INFINITY)?,
        })
    }
}
