//! Products with weights in which the result for a row does not depend on the number of rows.

use candle_core::{D, Result, Tensor};

use super::in_place::{is_read_in_place, product_in_place};

/// Up to this many results, `gemm` uses a kernel with another summation order, if the weights are stored by rows.
const SMALL_PRODUCT: usize = 16 * 16;

/// Up to this many columns and above this many rows, `gemm` splits the sums in another way if there are more terms than [`TERMS`].
const NARROW: usize = 64;
const TERMS: usize = 512;

/// A linear layer without bias.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    /// `[out, in]` on a GPU and where drift's own product reads it; otherwise `[in, out]`, which `gemm` reads without repacking.
    weight: Tensor,
    transposed: bool,
}

impl Linear {
    /// Returns a layer from weights as checkpoints store them, `[out, in]`; several matrices are stacked along `out`.
    pub(super) fn stacked(parts: &[Tensor]) -> Result<Self> {
        let weight = Tensor::cat(parts, 0)?;
        let transposed = !weight.device().is_cpu() || is_read_in_place(&weight);
        Ok(Linear { weight: if transposed { weight } else { weight.t()?.contiguous()? }, transposed })
    }

    /// Returns the same layer with its weights mapped to other weights of the same shape and layout.
    pub(super) fn with_weights(&self, map: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(Linear { weight: map(&self.weight)?, transposed: self.transposed })
    }

    /// Returns the weight matrix.
    pub(super) fn weights(&self) -> &Tensor {
        &self.weight
    }

    /// Returns whether the weights are stored as `[out, in]`.
    pub(super) fn is_transposed(&self) -> bool {
        self.transposed
    }

    /// Maps `x`, `[rows, in]`, to `[rows, out]`.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self.transposed {
            true if x.device().is_cpu() => product_in_place(x, &self.weight, None),
            true => x.matmul(&self.weight.t()?),
            false => stable_product(x, &self.weight),
        }
    }
}

/// `x · weight` for `[rows, in]` and `[in, out]`. On the CPU each row of the result is bit-identical for any number of rows and
/// threads: products for which `gemm` would choose another kernel are padded or split.
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
    // Pads to the number of rows with which `gemm` no longer counts the product as small. At least 2, because `gemm` has yet
    // another kernel for a single row.
    let least = (SMALL_PRODUCT / out + 1).max(2);
    if rows >= least {
        return x.matmul(weight);
    }
    x.pad_with_zeros(0, 0, least - rows)?.matmul(weight)?.narrow(0, 0, rows)?.contiguous()
}

/// Returns the product with the rows `ids` of a matrix `[vocab, in]`: `[rows, ids]`. On the CPU it is bit-identical to these columns of
/// the whole product.
pub(super) fn product_with_rows(x: &Tensor, matrix: &Tensor, ids: &[u32]) -> Result<Tensor> {
    // Always wider than `NARROW`, so the summation order is that of a wide product.
    let padded = ids.len().max(NARROW + 1);
    let mut index = ids.to_vec();
    // Any row can serve as padding, because its results are cut off.
    index.resize(padded, ids.first().copied().unwrap_or(0));
    let index = Tensor::from_vec(index, padded, x.device())?;
    let rows = matrix.index_select(&index, 0)?;
    stable_product(x, &rows.t()?)?.narrow(D::Minus1, 0, ids.len())?.contiguous()
}
