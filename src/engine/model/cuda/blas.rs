//! Products by cuBLAS.

// cuBLAS is C: what it is handed by address, no type can check.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fmt::Display;

use candle_core::cuda::cudarc::cublas::result::{self as cublas, CublasError};
use candle_core::cuda::cudarc::cublas::sys as cublas_sys;
use candle_core::cuda::cudarc::driver::CudaStream;

use super::gpu::Product;
use super::without_kernels;
use drift_core::error::Error;

/// cuBLAS on one stream. Not cudarc's, which panics where it cannot end what a failed kernel left.
pub(super) struct Blas(cublas_sys::cublasHandle_t);

impl Blas {
    pub(super) fn new(stream: &CudaStream) -> Result<Self, CublasError> {
        let blas = Blas(cublas::create_handle()?);
        // Sums stay f32 also where they are made in parts. TF32 is not the default, and is not asked for.
        let mode = cublas_sys::cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
        // SAFETY: the handle is there until `blas` is dropped, and the stream outlives it.
        unsafe {
            cublas::set_stream(blas.0, stream.cu_stream().cast())?;
            cublas_sys::cublasSetMathMode(blas.0, mode).result()?;
        }
        Ok(blas)
    }

    /// Lets it use this memory alone: it may take none while steps are recorded.
    pub(super) fn set_workspace(&self, address: u64, bytes: usize) -> Result<(), CublasError> {
        // SAFETY: the memory has so many bytes, and goes after the handle.
        unsafe { cublas_sys::cublasSetWorkspace_v2(self.0, address as *mut c_void, bytes) }.result()
    }

    /// A product; `sizes` are its rows, terms and columns.
    ///
    /// cuBLAS counts by columns. What is `[a, b]` by rows is to it `[b, a]`, the transposed matrix, `b` numbers from one column to
    /// the next. So of `out = x · w` it is asked for `outᵀ = wᵀ · xᵀ`, with m = columns, n = rows, k = terms: `outᵀ` and `xᵀ` are
    /// what it sees there. So is `wᵀ` where the weight is `[terms, columns]`. Where it is `[columns, terms]` it already is `wᵀ`, by
    /// rows; cuBLAS sees `w`, `terms` numbers from one column to the next, and is told to transpose.
    pub(super) fn product(
        &self,
        product: &Product,
        sizes: [c_int; 3],
        bf16: bool,
    ) -> Result<(), CublasError> {
        use cublas_sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
        use cublas_sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_32F};
        let Product { x, weight, out, transposed, wide, .. } = *product;
        let [rows, terms, columns] = sizes;
        let (turn, column) = if transposed { (CUBLAS_OP_T, terms) } else { (CUBLAS_OP_N, columns) };
        let read = if bf16 { CUDA_R_16BF } else { CUDA_R_32F };
        let written = if wide { CUDA_R_32F } else { read };
        let (one, zero) = (1f32, 0f32);
        // SAFETY: the arrays have these sizes and types, and the factors, which are f32 as the sums are, are read before it
        // returns.
        unsafe {
            cublas::gemm_ex(
                self.0,
                turn,
                CUBLAS_OP_N,
                columns,
                rows,
                terms,
                (&raw const one).cast(),
                weight as *const c_void,
                read,
                column,
                x as *const c_void,
                read,
                terms,
                (&raw const zero).cast(),
                out as *mut c_void,
                written,
                columns,
                cublas_sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                cublas_sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: nothing uses the handle any more. Nobody is left to tell if it stays.
        let _ = unsafe { cublas::destroy_handle(self.0) };
    }
}

/// The error of cuBLAS.
pub(super) fn cublas_says(place: &str, error: CublasError, what: impl Display) -> Error {
    Error::input(place, format!("cuBLAS says {:?}{what}", error.0), without_kernels())
}
