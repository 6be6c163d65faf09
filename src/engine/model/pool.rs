//! The memory that candle takes on a GPU: the pool of the driver.
//!
//! The driver gives back to the system what the pool does not use whenever a stream was waited for (CUDA Driver API, "Stream Ordered
//! Memory Allocator": the release threshold is 0), and mapping it again takes longer than many an operation. So the pool is told to keep it.

#![allow(unsafe_code)]

use candle_core::cuda::cudarc::driver::sys::{CUmemPool_attribute, CUmemoryPool};
use candle_core::cuda::cudarc::driver::{CudaContext, result};

/// The pool of a GPU; none where it has none.
fn of(context: &CudaContext) -> Option<CUmemoryPool> {
    context.bind_to_thread().ok()?;
    // SAFETY: the device is one of the driver's.
    unsafe { result::device::get_default_mem_pool(context.cu_device()) }.ok()
}

/// A number of bytes that the driver tells of a pool.
fn told(pool: CUmemoryPool, attribute: CUmemPool_attribute) -> Option<u64> {
    let mut bytes = 0u64;
    // SAFETY: the pool is the driver's, and these attributes are of 64 bits.
    unsafe { result::mem_pool::get_attribute(pool, attribute, (&raw mut bytes).cast()) }.ok()?;
    Some(bytes)
}

/// Before the first tensor: the pool is told to keep what is freed, and cudarc to record no events, by which it keeps several
/// streams apart: a dozen calls of the driver for an operation, and there is one stream. Where the driver refuses, all is as it was,
/// only slower.
pub(super) fn prepare(context: &CudaContext) {
    // SAFETY: all work goes to one stream, so that nothing is freed or written before its uses are over.
    unsafe { context.disable_event_tracking() };
    let mut threshold = u64::MAX;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    if let Some(pool) = of(context) {
        // SAFETY: the pool is the driver's, and the attribute is of 64 bits.
        let _ = unsafe { result::mem_pool::set_attribute(pool, attribute, (&raw mut threshold).cast()) };
    }
}

/// Bytes that the pool holds and nothing uses: candle may have them, and so may others after [`trim`].
pub(super) fn unused_bytes(context: &CudaContext) -> u64 {
    let unused = || {
        let pool = of(context)?;
        let held = told(pool, CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
        Some(held.saturating_sub(told(pool, CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?))
    };
    unused().unwrap_or(0)
}

/// Gives what nothing uses back to the driver, of what was freed before the stream was last waited for.
pub(super) fn trim(context: &CudaContext) {
    if let Some(pool) = of(context) {
        // SAFETY: the pool is the driver's. Where it refuses, there is no more memory than before.
        let _ = unsafe { result::mem_pool::trim_to(pool, 0) };
    }
}
