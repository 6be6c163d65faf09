//! Launches of kernels that may begin before the previous kernels have ended.

// The driver is a C library; the type system cannot check the memory behind its pointers.
#![allow(unsafe_code)]

use std::ffi::c_void;

use candle_core::cuda::cudarc::driver::sys::{
    CUfunction, CUfunction_attribute, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchConfig, CUstream, cuLaunchKernelEx,
};
use candle_core::cuda::cudarc::driver::{CudaFunction, DriverError};

use super::compile::told;
use drift_core::Result;

/// The lowest compute capability of a GPU that can launch a kernel before the previous one has ended.
const OVERLAPS_FROM: (i32, i32) = (9, 0);

/// The share of a multiprocessor's fast memory that kernels ask for as shared memory if they overlap, in percent; the rest is L1
/// cache. It gives 132 of 228 KB on Hopper, for blocks of `product_32` beside four of `attend`; no other share was tried. A
/// multiprocessor has one division at a time, and changes it only while it is idle.
const SHARED_PERCENT: i32 = 50;

/// Sets kernels up to begin before the previous ones have ended. Returns whether the GPU supports that.
///
/// # Errors
/// If the kernels cannot be set up for it.
pub(super) fn set_up<'k>(
    gpu: &str,
    capability: (i32, i32),
    mut kernels: impl Iterator<Item = &'k CudaFunction>,
) -> Result<bool> {
    let overlaps = capability >= OVERLAPS_FROM;
    if overlaps {
        let division = CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        let set = kernels.try_for_each(|kernel| kernel.set_attribute(division, SHARED_PERCENT));
        told(gpu, "kernels cannot be set up", set)?;
    }
    Ok(overlaps)
}

/// Launches a kernel that may begin before the previous kernels on the stream have ended (programmatic dependent launch: CUDA
/// driver API, `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`).
///
/// # Safety
/// The same as for [`result::launch_kernel`]. In addition, the kernel must wait for the previous kernels before it reads or writes
/// memory that they use (`ptx.cu`).
pub(super) unsafe fn launch_early(
    function: CUfunction,
    [x, y, z]: [u32; 3],
    threads: u32,
    stream: CUstream,
    arguments: &mut [*mut c_void],
) -> std::result::Result<(), DriverError> {
    let mut attribute = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    };
    let config = CUlaunchConfig {
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        attrs: &raw mut attribute,
        numAttrs: 1,
    };
    // SAFETY: the driver reads the settings and arguments before it returns; the caller guarantees the rest.
    unsafe { cuLaunchKernelEx(&raw const config, function, arguments.as_mut_ptr(), std::ptr::null_mut()) }
        .result()
}
