//! The memory that candle allocates on a GPU: the driver's memory pool.
//!
//! By default the driver returns the unused memory of the pool to the system at each stream synchronisation (CUDA Driver API,
//! "Stream Ordered Memory Allocator": the release threshold is 0). Mapping it again takes longer than many operations. So drift
//! tells the pool to keep it.

#![allow(unsafe_code)]

use candle_core::cuda::cudarc::driver::sys::{CUmemPool_attribute, CUmemoryPool};
use candle_core::cuda::cudarc::driver::{CudaContext, result};

/// Returns the default pool of a GPU; `None` if it has no pool.
fn of(context: &CudaContext) -> Option<CUmemoryPool> {
    context.bind_to_thread().ok()?;
    // SAFETY: the device comes from the driver.
    unsafe { result::device::get_default_mem_pool(context.cu_device()) }.ok()
}

/// Returns an attribute of a pool that is a number of bytes.
fn told(pool: CUmemoryPool, attribute: CUmemPool_attribute) -> Option<u64> {
    let mut bytes = 0u64;
    // SAFETY: the pool comes from the driver, and these attributes have 64 bits.
    unsafe { result::mem_pool::get_attribute(pool, attribute, (&raw mut bytes).cast()) }.ok()?;
    Some(bytes)
}

/// To be called before the first tensor is made. Tells the pool to keep freed memory, and cudarc to record no events. cudarc uses
/// events to order several streams, at a dozen driver calls per operation; here there is only one stream. If the driver refuses,
/// everything still works, only slower.
pub(super) fn prepare(context: &CudaContext) {
    // SAFETY: all work goes to one stream, so no memory is freed or written before its earlier uses have ended.
    unsafe { context.disable_event_tracking() };
    let mut threshold = u64::MAX;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    if let Some(pool) = of(context) {
        // SAFETY: the pool comes from the driver, and the attribute has 64 bits.
        let _ = unsafe { result::mem_pool::set_attribute(pool, attribute, (&raw mut threshold).cast()) };
    }
}

/// Returns the number of bytes that the pool holds but nothing uses. candle can allocate them; other users of the GPU can after [`trim`].
pub(super) fn unused_bytes(context: &CudaContext) -> u64 {
    let unused = || {
        let pool = of(context)?;
        let held = told(pool, CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
        Some(held.saturating_sub(told(pool, CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?))
    };
    unused().unwrap_or(0)
}

/// Returns unused memory of the pool to the driver, as far as it was freed before the last synchronisation of the stream.
pub(super) fn trim(context: &CudaContext) {
    if let Some(pool) = of(context) {
        // SAFETY: the pool comes from the driver. If the driver refuses, there is as much free memory as before.
        let _ = unsafe { result::mem_pool::trim_to(pool, 0) };
    }
}
