//! Products of few rows by a kernel of drift, which leaves parts that the reader adds. On an H100 these kernels are faster than
//! cuBLAS for up to 32 rows, and slower for 64 (`eval/records/2026-11-26-h100`).

use super::SumsArguments;
use super::abi::{argument, words};
use super::gpu::Gpu;
use super::products::{Matrix, Products};
use drift_core::Result;

/// The kernels, with the largest number of rows of each.
pub(super) const KERNELS: [(usize, &str); 2] = [(16, "product_16"), (32, "product_32")];

/// The largest number of rows for which a kernel computes a product; for more rows a library does.
const MOST_KERNEL_ROWS: usize = KERNELS[KERNELS.len() - 1].0;

/// The number of threads of a block of `product_16` or `product_32`, and the number of columns that it computes.
const THREADS: u32 = 256;
const COLUMNS: usize = 64;

/// The number of columns of a warp. The columns of a matrix must be a multiple of it.
const TILE: usize = 16;

/// The number of bytes of a column that four lanes read together, and that a block of threads reads.
const BLOCK_BYTES: usize = 64;
const PART_BYTES: usize = 16 * BLOCK_BYTES;

/// The arguments of a product: `Product` of `product.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct ProductArguments {
    /// `[rows, terms]`
    pub x: u64,
    /// `[columns, terms]`
    pub weight: u64,
    /// `[parts, rows, columns]`, f32, with one part per 512 terms in bf16 or 256 terms in f32.
    pub out: u64,
    /// The number of rows, at most the number in the kernel's name.
    pub rows: u32,
    /// The number of terms: a multiple of 32 in bf16, of 16 in f32.
    pub terms: u32,
    /// The number of columns, a multiple of 16.
    pub columns: u32,
    /// Zero.
    pub unused: u32,
}

impl ProductArguments {
    /// Returns the bytes of the kernel argument.
    pub fn bytes(&self) -> Vec<u8> {
        let ProductArguments { x, weight, out, rows, terms, columns, unused } = *self;
        [[x, weight, out].map(argument).concat(), words(&[rows, terms, columns, unused])].concat()
    }
}

impl Products {
    /// Returns the number of parts in which a kernel leaves the products with this matrix; `None` if no kernel can compute them.
    fn parts(self, matrix: Matrix) -> Option<usize> {
        let bytes = matrix.terms * self.number_bytes;
        let fits = bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES) && matrix.columns.is_multiple_of(TILE);
        (self.own && matrix.transposed && fits).then(|| bytes.div_ceil(PART_BYTES))
    }

    /// Returns the size in bytes of the parts of a product with this matrix, of at most `rows` rows; 0 if no kernel computes it.
    pub(super) fn parts_bytes(self, matrix: Matrix, rows: usize) -> usize {
        4 * self.parts(matrix).unwrap_or(0) * rows.min(MOST_KERNEL_ROWS) * matrix.columns
    }

    /// Launches a kernel for `out = x · matrix` of `rows` rows. Returns how to read the result, or `None` if a library has to
    /// compute it.
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
        // The matrices of Qwen3-0.6B, and one whose last part is shorter.
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
        // The parts of 32 rows, or the results of 100 rows if that is more.
        assert_eq!(bf16.result_bytes(matrix(2048, 1024), 100), 4 * 4 * 32 * 1024);
        assert_eq!(bf16.result_bytes(matrix(1024, 6144), 512), 2 * 512 * 6144);
    }
}
