//! The heads of attention: sizes and norms.

use candle_core::{DType, Result, Tensor};

/// Sizes of the heads of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    /// Query heads.
    pub queries: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Size of one.
    pub dim: usize,
}

impl Heads {
    /// Columns of queries, keys and values side by side.
    pub(super) fn columns(self) -> usize {
        (self.queries + 2 * self.kv_heads) * self.dim
    }

    pub(super) fn group(self) -> usize {
        self.queries / self.kv_heads
    }
}

/// The norm of each head, as Qwen3 has it.
#[derive(Debug, Clone)]
pub(super) struct HeadNorm {
    /// `[dim]`
    pub weight: Tensor,
    /// `weight` in f32 on the host, `dim` numbers, where the kernels of the CPU read it.
    pub numbers: Vec<f32>,
    /// Epsilon.
    pub epsilon: f32,
}

impl HeadNorm {
    /// Keeps `weight` also where the kernels read it.
    pub(super) fn new(weight: Tensor, epsilon: f64) -> Result<Self> {
        let numbers = weight.to_dtype(DType::F32)?.to_vec1()?;
        Ok(HeadNorm { weight, numbers, epsilon: epsilon as f32 })
    }
}
