//! The products of a step: by a library, or, of few rows, by a kernel of drift's that leaves parts to be added.

use super::abi::{ProductArguments, SumsArguments};
use super::gpu::{Gpu, Product};
use crate::error::Result;

/// Kernels by the most rows that they take.
const KERNELS: [(usize, &str); 3] = [(16, "product_16"), (32, "product_32"), (64, "product_64")];

/// The most rows of a product that a kernel computes; above it a library does.
const MOST_KERNEL_ROWS: usize = KERNELS[KERNELS.len() - 1].0;

/// Threads of a block of `product_16` and its like, and columns of it.
const THREADS: u32 = 128;
const COLUMNS: usize = 64;

/// Columns of a warp: there are no parts of as many.
const TILE: usize = 16;

/// Bytes of a column that are read at once, and how often a warp has as many in flight.
const BLOCK_BYTES: usize = 64;
const AHEAD: usize = 8;

/// Blocks that are wanted, so that every multiprocessor of an H100 (132) has one. To be measured.
const BLOCKS: usize = 160;

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

/// The ranges that a kernel splits the terms of a matrix into, so that there are enough blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ranges {
    /// Terms of a range; the last one has the rest.
    share: usize,
    count: usize,
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
    /// How a kernel computes products with this matrix, if it does.
    fn ranges(self, matrix: Matrix) -> Option<Ranges> {
        let block = BLOCK_BYTES / self.number_bytes;
        let fits = matrix.terms.is_multiple_of(block) && matrix.columns.is_multiple_of(TILE);
        if !self.own || !matrix.transposed || !fits || matrix.terms == 0 {
            return None;
        }
        let blocks = matrix.terms / block;
        let wanted = BLOCKS / matrix.columns.div_ceil(COLUMNS).max(1);
        let share = blocks.div_ceil(wanted.clamp(1, (blocks / AHEAD).max(1)));
        Some(Ranges { share: share * block, count: blocks.div_ceil(share) })
    }

    /// Bytes of the result of a product with this matrix, of at most `rows` rows.
    pub(super) fn result_bytes(self, matrix: Matrix, rows: usize) -> usize {
        let parts = self.ranges(matrix).map_or(0, |ranges| ranges.count);
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
        let (Some((_, kernel)), Some(Ranges { share, count })) = (kernel, self.ranges(matrix)) else {
            gpu.product(&Product { x, weight, out, rows, terms, columns, transposed, wide: false })?;
            return Ok(SumsArguments::whole(out));
        };
        let [rows, terms, share] = [rows, terms, share].map(|size| size as u32);
        let stride = rows * columns as u32;
        let arguments = ProductArguments { x, weight, out, rows, terms, columns: columns as u32, share };
        let grid = [columns.div_ceil(COLUMNS) as u32, count as u32, 1];
        gpu.launch(kernel, grid, THREADS, &[arguments.bytes()])?;
        Ok(SumsArguments { from: out, parts: count as u32, stride })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(terms: usize, columns: usize) -> Matrix {
        Matrix { address: 0, terms, columns, transposed: true }
    }

    #[test]
    fn ranges_cover_all_terms_and_fill_a_gpu() {
        let bf16 = Products { own: true, number_bytes: 2 };
        // The matrices of Qwen3-0.6B.
        for (terms, columns, share, count) in
            [(1024, 4096, 512, 2), (2048, 1024, 256, 8), (1024, 6144, 1024, 1), (3072, 1024, 320, 10)]
        {
            assert_eq!(bf16.ranges(matrix(terms, columns)), Some(Ranges { share, count }), "{terms}");
        }
        for products in [bf16, Products { own: true, number_bytes: 4 }] {
            for terms in (0..3000).step_by(16) {
                for columns in [16, 64, 1024, 5120] {
                    let Some(Ranges { share, count }) = products.ranges(matrix(terms, columns)) else {
                        assert!(terms % 32 > 0 || terms == 0);
                        continue;
                    };
                    assert!(share * (count - 1) < terms && terms <= share * count, "{terms}");
                    assert!(share % (BLOCK_BYTES / products.number_bytes) == 0);
                }
            }
        }
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
            assert_eq!(products.ranges(matrix), None);
            assert_eq!(products.result_bytes(matrix, 100), 2 * 100 * matrix.columns);
        }
        // Parts of 64 rows, or the numbers of more.
        assert_eq!(bf16.result_bytes(matrix(2048, 1024), 100), 4 * 8 * 64 * 1024);
        assert_eq!(bf16.result_bytes(matrix(1024, 6144), 512), 2 * 512 * 6144);
    }
}
