//! The operations that the decode step needs from a device. A GPU implements them with the driver, cuBLAS and graphs; in tests a
//! program on the CPU implements them.

use std::ops::Range;

use candle_core::Tensor;

use drift_core::Result;
pub use drift_data::generation::GpuIdentity;

/// A device that launches the kernels of [`CUDA_SOURCES`](super::CUDA_SOURCES), compiled for one model. It does all work in the
/// order of the calls. It also keeps the order with candle's work on the same device: earlier work of candle comes before, later
/// work after. Memory is freed together with the device.
pub trait Gpu {
    /// Returns the identity of the device and its kernels; `None` if later runs cannot rely on it.
    fn identity(&self) -> Option<GpuIdentity> {
        None
    }

    /// Allocates memory and returns its address. The memory is all zero and aligned to 256 bytes.
    ///
    /// # Errors
    /// If there is not enough memory.
    fn allocate(&mut self, bytes: usize) -> Result<u64>;

    /// Copies `bytes` to an address. The caller may change `bytes` as soon as the call returns.
    ///
    /// # Errors
    /// If the device fails.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()>;

    /// Copies bytes from an address, after all work of earlier calls is done.
    ///
    /// # Errors
    /// If the device fails, also in the work of earlier calls.
    fn read(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>>;

    /// Returns the address of the numbers of a candle tensor. The tensor is contiguous, is on this device, and outlives it.
    ///
    /// # Errors
    /// If the tensor is not contiguous or not on this device, or its type or alignment does not suit the kernels.
    fn address(&mut self, tensor: &Tensor) -> Result<u64>;

    /// Tells the device that candle wrote the numbers `written` of a tensor whose address was requested before. If kernels read
    /// candle's memory directly, there is nothing to do.
    ///
    /// # Errors
    /// If the device fails.
    fn refresh(&mut self, tensor: &Tensor, written: Range<usize>) -> Result<()>;

    /// Launches a kernel over `grid` blocks. Each argument is given as its bytes in memory.
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

    /// Launches a matrix product of a library.
    ///
    /// # Errors
    /// If the launch is refused.
    fn product(&mut self, product: &Product) -> Result<()>;

    /// Starts to record launches instead of executing them. Returns whether the device can record.
    ///
    /// # Errors
    /// If the device fails.
    fn record(&mut self) -> Result<bool>;

    /// Ends the recording and returns its number, counted from 0.
    ///
    /// # Errors
    /// If the launches cannot be recorded.
    fn recorded(&mut self) -> Result<usize>;

    /// Executes a recording.
    ///
    /// # Errors
    /// If the device fails.
    fn replay(&mut self, recording: usize) -> Result<()>;
}

/// `out = x · weight` or `x · weightᵀ`, with all matrices stored by rows. Sums are f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// `[rows, terms]`, in the type of the model.
    pub x: u64,
    /// `[terms, columns]`, or `[columns, terms]` if `transposed`; in the type of the model.
    pub weight: u64,
    /// `[rows, columns]`, in the type of the model, or in f32 if `wide`.
    pub out: u64,
    /// The number of rows of `x`.
    pub rows: usize,
    /// The number of terms of a sum.
    pub terms: usize,
    /// The number of columns of the result.
    pub columns: usize,
    /// Whether the weights of one column are contiguous.
    pub transposed: bool,
    /// Whether the result is f32 whatever the type of the model.
    pub wide: bool,
}
