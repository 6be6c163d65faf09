//! The matrix products of a step: those of few rows by kernels (`own_products`), those of more rows by a library.

use super::SumsArguments;
use super::gpu::{Gpu, Product};
use drift_core::Result;

/// A matrix of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix {
    /// The address of the weights.
    pub address: u64,
    /// The number of terms of a sum.
    pub terms: usize,
    /// The number of columns of a result.
    pub columns: usize,
    /// Whether the weights of one column are contiguous.
    pub transposed: bool,
}

/// The way in which the products of a step are computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Products {
    /// Whether drift's kernels compute the products that they can.
    pub own: bool,
    /// The size in bytes of a number of the model.
    pub number_bytes: usize,
}

impl Products {
    /// Returns the size in bytes of the result of a product with this matrix, for any number of rows up to `rows`.
    pub(super) fn result_bytes(self, matrix: Matrix, rows: usize) -> usize {
        let whole = self.number_bytes * rows * matrix.columns;
        whole.max(self.parts_bytes(matrix, rows))
    }

    /// Launches `out = x · matrix` for `rows` rows. Returns how to read the result.
    ///
    /// # Errors
    /// If the launch is refused.
    pub(super) fn launch(
        self,
        gpu: &mut dyn Gpu,
        (x, matrix): (u64, Matrix),
        out: u64,
        rows: usize,
    ) -> Result<SumsArguments> {
        if let Some(sums) = self.launch_own(gpu, (x, matrix), out, rows)? {
            return Ok(sums);
        }
        let Matrix { address: weight, terms, columns, transposed } = matrix;
        gpu.product(&Product { x, weight, out, rows, terms, columns, transposed, wide: false })?;
        Ok(SumsArguments::whole(out))
    }
}
