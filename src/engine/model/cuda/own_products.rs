//! Products of few rows by a kernel of drift's that leaves parts to be added. On an H100 they are faster than cuBLAS' for up to 32 rows,
//! and slower for 64 (`eval/records/2026-11-26-h100`).

use super::SumsArguments;
use super::abi::{argument, words};
use super::gpu::Gpu;
use super::products::{Matrix, Products};
use drift_core::error::Result;

/// Kernels by the most rows that they take.
pub(super) const KERNELS: [(usize, &str); 2] = [(16, "product_16"), (32, "product_32")];

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

/// What a product is of: `Product` of `product.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct ProductArguments {
    /// `[rows, terms]`
    pub x: u64,
    /// `[columns, terms]`
    pub weight: u64,
    /// `[parts, rows, columns]`, f32: a part for 512 terms in bf16, 256 in f32.
    pub out: u64,
    /// Rows, at most as many as the kernel's name says.
    pub rows: u32,
    /// A multiple of 32 in bf16, of 16 in f32.
    pub terms: u32,
    /// A multiple of 16.
    pub columns: u32,
    /// Zero.
    pub unused: u32,
}

impl ProductArguments {
    /// As it is passed.
    pub fn bytes(&self) -> Vec<u8> {
        let ProductArguments { x, weight, out, rows, terms, columns, unused } = *self;
        [[x, weight, out].map(argument).concat(), words(&[rows, terms, columns, unused])].concat()
    }
}

impl Products {
    /// The parts in which a kernel leaves the sums of products with this matrix, if it computes them.
    fn parts(self, matrix: Matrix) -> Option<usize> {
        let bytes = matrix.terms * self.number_bytes;
        let fits = bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES) && matrix.columns.is_multiple_of(TILE);
        (self.own && matrix.transposed && fits).then(|| bytes.div_ceil(PART_BYTES))
    }

    /// Bytes of the parts of a product with this matrix, of at most `rows` rows; 0 where no kernel computes it.
    pub(super) fn parts_bytes(self, matrix: Matrix, rows: usize) -> usize {
        4 * self.parts(matrix).unwrap_or(0) * rows.min(MOST_KERNEL_ROWS) * matrix.columns
    }

    /// `out = x · matrix` of so many rows by a kernel, and how to read it; none where a library has to.
    ///
    /// # Errors
    /// If the launch is refused.
    pub(super) fn launch_own(
        self,
        gpu: &mut dyn Gpu,
        (x, matrix): (u64, Matrix),
        out: u64,
        rows: usize,
    ) -> Result<Option<SumsArguments>> {
        let Matrix { address: weight, terms, columns, .. } = matrix;
        let kernel = KERNELS.iter().find(|(most, _)| rows <= *most);
        let (Some((_, kernel)), Some(parts)) = (kernel, self.parts(matrix)) else { return Ok(None) };
        let [rows, terms, parts, blocks] =
            [rows, terms, parts, columns.div_ceil(COLUMNS)].map(|size| size as u32);
        let columns = columns as u32;
        let arguments = ProductArguments { x, weight, out, rows, terms, columns, unused: 0 };
        gpu.launch(kernel, [blocks, parts, 1], THREADS, &[arguments.bytes()])?;
        Ok(Some(SumsArguments { from: out, parts, stride: rows * columns }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::products::{Matrix, Products};

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
        // Parts of 32 rows, or the numbers of more.
        assert_eq!(bf16.result_bytes(matrix(2048, 1024), 100), 4 * 4 * 32 * 1024);
        assert_eq!(bf16.result_bytes(matrix(1024, 6144), 512), 2 * 512 * 6144);
    }
}
