//! The products of a step: of few rows by kernels (`own_products`), of more by a library.

use super::SumsArguments;
use super::gpu::{Gpu, Product};
use drift_core::error::Result;

/// A matrix of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix {
    /// Where it lies.
    pub address: u64,
    /// Terms of a sum.
    pub terms: usize,
    /// Columns of a result.
    pub columns: usize,
    /// Whether the weights of one column lie one behind the other.
    pub transposed: bool,
}

/// Who computes the products of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Products {
    /// Whether kernels of drift's do where they can.
    pub own: bool,
    /// Bytes of a number of the model.
    pub number_bytes: usize,
}

impl Products {
    /// Bytes of the result of a product with this matrix, of at most `rows` rows.
    pub(super) fn result_bytes(self, matrix: Matrix, rows: usize) -> usize {
        let whole = self.number_bytes * rows * matrix.columns;
        whole.max(self.parts_bytes(matrix, rows))
    }

    /// `out = x · matrix` of so many rows; how to read it.
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
