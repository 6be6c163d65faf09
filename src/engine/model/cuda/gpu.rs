//! What the decode step asks of a device. A GPU does it by the driver, cuBLAS and graphs; in tests a program on the CPU does.

use std::ops::Range;

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use drift_core::error::Result;

/// What a verdict on kernels holds for: they may do otherwise on another GPU, under another driver, or compiled anew.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GpuIdentity {
    /// Its name and compute capability: `NVIDIA H100 80GB HBM3, 9.0`.
    pub gpu: String,
    /// The newest CUDA that its driver knows, and the driver's own version where the system tells it.
    pub driver: String,
    /// Which kernels: the first characters of the SHA-256 of what was compiled.
    pub kernels: String,
}

/// A device that launches the kernels of [`CUDA_SOURCES`](super::CUDA_SOURCES), compiled for one model. All work is done in the
/// order in which it is asked for, behind what candle was told before on the same device, and before what it is told after.
/// Memory is freed with the device.
pub trait Gpu {
    /// Which device it is, and which kernels it has; none if nobody may rely on it the next time.
    fn identity(&self) -> Option<GpuIdentity> {
        None
    }

    /// The address of new memory, all zero, aligned to 256 bytes.
    ///
    /// # Errors
    /// If there is not enough.
    fn allocate(&mut self, bytes: usize) -> Result<u64>;

    /// Copies `bytes` to an address; they may be changed as soon as it returns.
    ///
    /// # Errors
    /// If the device fails.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()>;

    /// Copies from an address, when all that was asked for before is done.
    ///
    /// # Errors
    /// If the device fails, also in what was asked for before.
    fn read(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>>;

    /// Where the numbers of a tensor of candle lie. It is contiguous, on this device, and outlives it.
    ///
    /// # Errors
    /// If it is none of these.
    fn address(&mut self, tensor: &Tensor) -> Result<u64>;

    /// Says that candle wrote the numbers `written` of a tensor whose address was asked for. Where kernels read what candle
    /// writes, there is nothing to do.
    ///
    /// # Errors
    /// If the device fails.
    fn refresh(&mut self, tensor: &Tensor, written: Range<usize>) -> Result<()>;

    /// Launches a kernel over `grid` blocks. Each argument is what it is called with, as it lies in memory.
    ///
    /// # Errors
    /// If there is no such kernel, or the launch is refused.
    fn launch(
        &mut self,
        kernel: &'static str,
        grid: [u32; 3],
        threads: u32,
        arguments: &[Vec<u8>],
    ) -> Result<()>;

    /// A product by a library.
    ///
    /// # Errors
    /// If the launch is refused.
    fn product(&mut self, product: &Product) -> Result<()>;

    /// Begins to record what is launched, in place of doing it; whether it can.
    ///
    /// # Errors
    /// If the device fails.
    fn record(&mut self) -> Result<bool>;

    /// Ends the recording, and gives it a number, from 0 on.
    ///
    /// # Errors
    /// If what was launched cannot be recorded.
    fn recorded(&mut self) -> Result<usize>;

    /// Does what was recorded.
    ///
    /// # Errors
    /// If the device fails.
    fn replay(&mut self, recording: usize) -> Result<()>;
}

/// `out = x · weight`, or `x · weightᵀ`, all by rows. Sums are f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// `[rows, terms]`, in the type of the model.
    pub x: u64,
    /// `[terms, columns]`, or `[columns, terms]` where `transposed`; in the type of the model.
    pub weight: u64,
    /// `[rows, columns]`, in the type of the model, or in f32 where `wide`.
    pub out: u64,
    /// Rows of `x`.
    pub rows: usize,
    /// Terms of a sum.
    pub terms: usize,
    /// Columns of the result.
    pub columns: usize,
    /// Whether the weights of one column lie one behind the other.
    pub transposed: bool,
    /// Whether the result is f32 whatever the model is.
    pub wide: bool,
}
