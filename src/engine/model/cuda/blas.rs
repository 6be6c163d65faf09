//! Matrix products by cuBLAS.

// cuBLAS is a C library; the type system cannot check the memory behind its pointers.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fmt::Display;

use candle_core::cuda::cudarc::cublas::result::{self as cublas, CublasError};
use candle_core::cuda::cudarc::cublas::sys as cublas_sys;
use candle_core::cuda::cudarc::driver::CudaStream;

use super::gpu::Product;
use super::without_kernels;
use drift_core::Error;

/// A cuBLAS handle for one stream. It is not cudarc's type, because that panics if it cannot be destroyed after a kernel failed.
pub(super) struct Blas(cublas_sys::cublasHandle_t);

impl Blas {
    pub(super) fn new(stream: &CudaStream) -> Result<Self, CublasError> {
        let blas = Blas(cublas::create_handle()?);
        // Sums stay f32 even if they are computed in parts. TF32 is off by default and is not requested.
        let mode = cublas_sys::cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
        // SAFETY: the handle exists until `blas` is dropped, and the stream outlives it.
        unsafe {
            cublas::set_stream(blas.0, stream.cu_stream().cast())?;
            cublas_sys::cublasSetMathMode(blas.0, mode).result()?;
        }
        Ok(blas)
    }

    /// Makes cuBLAS use only this workspace, because it may not allocate memory while steps are recorded.
    pub(super) fn set_workspace(&self, address: u64, bytes: usize) -> Result<(), CublasError> {
        // SAFETY: the memory has this number of bytes and is freed after the handle.
        unsafe { cublas_sys::cublasSetWorkspace_v2(self.0, address as *mut c_void, bytes) }.result()
    }

    /// Launches a product; `sizes` are its rows, terms and columns.
    ///
    /// cuBLAS stores matrices by columns. A matrix `[a, b]` stored by rows is to cuBLAS the transposed matrix `[b, a]`, with `b`
    /// numbers from one column to the next. So for `out = x · w` we request `outᵀ = wᵀ · xᵀ` with m = columns, n = rows, k = terms;
    /// cuBLAS sees `outᵀ` and `xᵀ` at the addresses of `out` and `x`. If the weight is stored as `[terms, columns]`, cuBLAS sees
    /// `wᵀ` there too. If it is stored as `[columns, terms]`, cuBLAS sees `w`, with `terms` numbers from one column to the next,
    /// and is told to transpose it.
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
        // SAFETY: the arrays have these sizes and types. The factors are f32, as the type of the sums requires, and cuBLAS reads
        // them before it returns.
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
        // SAFETY: nothing uses the handle any more. An error cannot be reported here.
        let _ = unsafe { cublas::destroy_handle(self.0) };
    }
}

/// Turns an error of cuBLAS into drift's error.
pub(super) fn cublas_says(place: &str, error: CublasError, what: impl Display) -> Error {
    Error::input(place, format!("cuBLAS says {:?}{what}", error.0), without_kernels())
}
