//! The products of a step: by a library, or, of few rows, by a kernel of drift's that leaves parts to be added.

use super::abi::{ProductArguments, SumsArguments};
use super::gpu::{Gpu, Product};
use drift_core::error::Result;

/// Kernels by the most rows that they take.
const KERNELS: [(usize, &str); 3] = [(16, "product_16"), (32, "product_32"), (64, "product_64")];

/// The most rows of a product that a kernel computes; above it a library does.
const MOST_KERNEL_ROWS: usize = KERNELS[KERNELS.len() - 1].0;

/// Threads of a block of `product_16` and its like, and columns of it.
const THREADS: u32 = 256;
const COLUMNS: usize = 64;

/// Columns of a warp: there are no parts of as many.
const TILE: usize = 16;

/// Bytes of a column that lanes read together, and of what a block of threads reads of it.
const BLOCK_BYTES: usize = 64;
const PART_BYTES: usize = 16 * BLOCK_BYTES;

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
    /// The parts in which a kernel leaves the sums of products with this matrix, if it computes them.
    fn parts(self, matrix: Matrix) -> Option<usize> {
        let bytes = matrix.terms * self.number_bytes;
        let fits = bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES) && matrix.columns.is_multiple_of(TILE);
        (self.own && matrix.transposed && fits).then(|| bytes.div_ceil(PART_BYTES))
    }

    /// Bytes of the result of a product with this matrix, of at most `rows` rows.
    pub(super) fn result_bytes(self, matrix: Matrix, rows: usize) -> usize {
        let parts = self.parts(matrix).unwrap_or(0);
        let numbers = |rows: usize| rows * matrix.columns;
        (self.number_bytes * numbers(rows)).max(4 * parts * numbers(rows.min(MOST_KERNEL_ROWS)))
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
        let Matrix { address: weight, terms, columns, transposed } = matrix;
        let kernel = KERNELS.iter().find(|(most, _)| rows <= *most);
        let (Some((_, kernel)), Some(parts)) = (kernel, self.parts(matrix)) else {
            gpu.product(&Product { x, weight, out, rows, terms, columns, transposed, wide: false })?;
            return Ok(SumsArguments::whole(out));
        };
        let [rows, terms, parts, blocks] =
            [rows, terms, parts, columns.div_ceil(COLUMNS)].map(|size| size as u32);
        let columns = columns as u32;
        let arguments = ProductArguments { x, weight, out, rows, terms, columns, unused: 0 };
        gpu.launch(kernel, [blocks, parts, 1], THREADS, &[arguments.bytes()])?;
        Ok(SumsArguments { from: out, parts, stride: rows * columns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(terms: usize, columns: usize) -> Matrix {
        Matrix { address: 0, terms, columns, transposed: true }
    }

    #[test]
    fn each_part_has_terms() {
        let bf16 = Products { own: true, number_bytes: 2 };
        // The matrices of Qwen3-0.6B, and one that ends with a shorter part.
        for (terms, columns, parts) in
            [(1024, 4096, 2), (2048, 1024, 4), (1024, 6144, 2), (3072, 1024, 6), (544, 64, 2)]
        {
            assert_eq!(bf16.parts(matrix(terms, columns)), Some(parts), "{terms}");
        }
        assert_eq!(Products { own: true, number_bytes: 4 }.parts(matrix(272, 64)), Some(2));
    }

    #[test]
    fn what_no_kernel_takes_a_library_does() {
        let bf16 = Products { own: true, number_bytes: 2 };
        let other = Matrix { transposed: false, ..matrix(1024, 4096) };
        for (products, matrix) in [
            (Products { own: false, ..bf16 }, matrix(1024, 4096)),
            (bf16, other),
            (bf16, matrix(1000, 4096)),
            (bf16, matrix(1024, 4090)),
        ] {
            assert_eq!(products.parts(matrix), None);
            assert_eq!(products.result_bytes(matrix, 100), 2 * 100 * matrix.columns);
        }
        // Parts of 64 rows, or the numbers of more.
        assert_eq!(bf16.result_bytes(matrix(2048, 1024), 100), 4 * 4 * 64 * 1024);
        assert_eq!(bf16.result_bytes(matrix(1024, 6144), 512), 2 * 512 * 6144);
    }
}
