//! Attention heads: sizes and norms.

use candle_core::{DType, Device, Result, Tensor};

/// The sizes of the attention heads of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    /// The number of query heads.
    pub queries: usize,
    /// The number of key and value heads.
    pub kv_heads: usize,
    /// The size of one head.
    pub dim: usize,
}

impl Heads {
    /// Returns the number of columns of queries, keys and values side by side.
    pub(super) fn columns(self) -> usize {
        (self.queries + 2 * self.kv_heads) * self.dim
    }

    pub(super) fn group(self) -> usize {
        self.queries / self.kv_heads
    }
}

/// The RMS norm of each query or key head, which Qwen3 has.
#[derive(Debug, Clone)]
pub(super) struct HeadNorm {
    /// `[dim]`
    pub weight: Tensor,
    /// `weight` as `dim` f32 numbers for the CPU kernels; empty if it lies on a GPU.
    pub numbers: Vec<f32>,
    /// Epsilon.
    pub epsilon: f32,
}

impl HeadNorm {
    /// Keeps `weight`, and on the CPU also its numbers.
    pub(super) fn new(weight: Tensor, epsilon: f64) -> Result<Self> {
        // Only the kernels of the CPU read them, and a copy from a GPU would wait until the GPU has done all its work.
        let numbers = match weight.device() {
            Device::Cpu => weight.to_dtype(DType::F32)?.to_vec1()?,
            _ => Vec::new(),
        };
        Ok(HeadNorm { weight, numbers, epsilon: epsilon as f32 })
    }
}
