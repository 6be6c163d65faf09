//! Products with weights whose rows do not depend on the number of rows.

use candle_core::{D, Result, Tensor};

use super::in_place::{is_read_in_place, product_in_place};

/// `gemm` takes a kernel of another summation order up to this many results, for weights stored by rows.
const SMALL_PRODUCT: usize = 16 * 16;

/// `gemm` splits the summation otherwise above this many columns and rows, if there are more terms than [`TERMS`].
const NARROW: usize = 64;
const TERMS: usize = 512;

/// A layer without bias.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    /// `[out, in]` on a GPU, and where drift's own product reads it; else `[in, out]`, which `gemm` reads without repacking.
    weight: Tensor,
    transposed: bool,
}

impl Linear {
    /// From weights as checkpoints store them, `[out, in]`, several ones stacked along `out`.
    pub(super) fn stacked(parts: &[Tensor]) -> Result<Self> {
        let weight = Tensor::cat(parts, 0)?;
        let transposed = !weight.device().is_cpu() || is_read_in_place(&weight);
        Ok(Linear { weight: if transposed { weight } else { weight.t()?.contiguous()? }, transposed })
    }

    /// The same layer with its weights mapped to others of the same shape and layout.
    pub(super) fn with_weights(&self, map: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(Linear { weight: map(&self.weight)?, transposed: self.transposed })
    }

    /// All of its weights.
    pub(super) fn weights(&self) -> &Tensor {
        &self.weight
    }

    /// Whether they lie as `[out, in]`.
    pub(super) fn is_transposed(&self) -> bool {
        self.transposed
    }

    /// `x` is `[rows, in]`, the result `[rows, out]`.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self.transposed {
            true if x.device().is_cpu() => product_in_place(x, &self.weight, None),
            true => x.matmul(&self.weight.t()?),
            false => stable_product(x, &self.weight),
        }
    }
}

/// `x · weight` for `[rows, in]` and `[in, out]`. On the CPU each row comes out the same, bit for bit, whatever the
/// number of rows and threads: products that `gemm` would hand to another kernel are padded or cut.
pub(super) fn stable_product(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (rows, terms) = x.dims2()?;
    let out = weight.dim(1)?;
    if !x.device().is_cpu() {
        return x.matmul(weight);
    }
    if out <= NARROW && terms > TERMS && rows > NARROW {
        let blocks = (0..rows).step_by(NARROW);
        let blocks = blocks.map(|at| stable_product(&x.narrow(0, at, NARROW.min(rows - at))?, weight));
        return Tensor::cat(&blocks.collect::<Result<Vec<_>>>()?, 0);
    }
    // As many rows as bring the results above what `gemm` calls small; two at least, for one row alone takes another kernel
    // still.
    let least = (SMALL_PRODUCT / out + 1).max(2);
    if rows >= least {
        return x.matmul(weight);
    }
    x.pad_with_zeros(0, 0, least - rows)?.matmul(weight)?.narrow(0, 0, rows)?.contiguous()
}

/// The product with the rows `ids` of a matrix `[vocab, in]`, as `[rows, ids]`; equal, bit for bit, to the columns of
/// the whole product on the CPU.
pub(super) fn product_with_rows(x: &Tensor, matrix: &Tensor, ids: &[u32]) -> Result<Tensor> {
    // Never narrow, so that the summation is that of a wide product.
    let padded = ids.len().max(NARROW + 1);
    let mut index = ids.to_vec();
    // Any row will do to pad with: its results are cut off.
    index.resize(padded, ids.first().copied().unwrap_or(0));
    let index = Tensor::from_vec(index, padded, x.device())?;
    let rows = matrix.index_select(&index, 0)?;
    stable_product(x, &rows.t()?)?.narrow(D::Minus1, 0, ids.len())?.contiguous()
}
