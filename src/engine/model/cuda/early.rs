//! Launches that may begin before the kernels before them are over.

// The driver is C: what it is handed by address, no type can check.
#![allow(unsafe_code)]

use std::ffi::c_void;

use candle_core::cuda::cudarc::driver::sys::{
    CUfunction, CUfunction_attribute, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchConfig, CUstream, cuLaunchKernelEx,
};
use candle_core::cuda::cudarc::driver::{CudaFunction, DriverError};

use super::compile::told;
use drift_core::error::Result;

/// The least compute capability of a GPU that launches a kernel before the one before it is over.
const OVERLAPS_FROM: (i32, i32) = (9, 0);

/// The part of a multiprocessor's fast memory that is for sharing, in percent, where kernels overlap: 132 of 228 KB on Hopper, for blocks of
/// `product_32` beside four of `attend`; no other part was tried. A multiprocessor has one division at a time, and changes it only when it
/// is idle.
const SHARED_PERCENT: i32 = 50;

/// Sets kernels up to begin before those before them are over; whether the GPU can that.
///
/// # Errors
/// If kernels cannot be set up for it.
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

/// Launches a kernel that may begin before those before it on the stream are over (programmatic dependent launch: CUDA driver API,
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`).
///
/// # Safety
/// As of [`result::launch_kernel`]; and the kernel waits for those before it, before it reads or writes what they do (`ptx.cu`).
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
    // SAFETY: the driver reads settings and arguments before it returns; the rest is the caller's.
    unsafe { cuLaunchKernelEx(&raw const config, function, arguments.as_mut_ptr(), std::ptr::null_mut()) }
        .result()
}
