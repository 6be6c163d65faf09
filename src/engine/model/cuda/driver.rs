//! A GPU, used through the driver, NVRTC and cuBLAS. All work goes to candle's own stream of the device. So it runs after
//! everything that candle launched before, and before everything that candle launches later.
//!
//! cudarc orders several streams by events, which are not needed for one stream. The launches, copies and products of this module
//! go directly to the driver and record no events. So there are none in a graph either, where events from outside are errors.
//! candle frees its memory on the same stream, so after everything that was launched before.

// The driver and cuBLAS are C libraries; the type system cannot check the memory behind their pointers.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::Arc;

use candle_core::cuda::CudaStorageSlice;
use candle_core::cuda::cudarc::driver::sys::{
    CUdeviceptr, CUgraphInstantiate_flags, CUresult, CUstreamCaptureMode,
};
use candle_core::cuda::cudarc::driver::{
    CudaContext, CudaFunction, CudaGraph, CudaSlice, CudaStream, DevicePtr, DriverError, PinnedHostSlice,
    result,
};
use candle_core::{Device, Storage, Tensor};

use super::blas::{Blas, cublas_says};
use super::compile::{self, said, told, told_with};
use super::early::{launch_early, set_up};
use super::gpu::{Gpu, GpuIdentity, Product};
use super::identity::identity_of;
use super::{KernelShape, without_kernels};
use crate::model::failed;
use crate::model::memory::gib;
use crate::model::pool;
use crate::parameter;
use drift_core::{Error, Result};

/// The names of the kernels.
const KERNELS: &str =
    "embed add_norm last_norm gated gather head append_all attend enter choose choose_any pack";

/// The size in bytes of the page-locked host memory for writes to the GPU.
const STAGING_BYTES: usize = 1 << 20;

/// The workspace that NVIDIA recommends for cuBLAS on Hopper, in bytes; older GPUs need less.
const WORKSPACE_BYTES: usize = 32 << 20;

/// Addresses of tensors must be multiples of this number of bytes, because `attend` reads vectors of this size.
const ALIGNMENT: u64 = 16;

/// No options for the instantiation of a graph.
const PLAIN: CUgraphInstantiate_flags = CUgraphInstantiate_flags(0);

/// A GPU, used through the driver, NVRTC and cuBLAS. The fields are dropped in this order: users of the memory before the memory.
pub(crate) struct Driver {
    graphs: Vec<CudaGraph>,
    blas: Blas,
    pub(super) kernels: Vec<(&'static str, CudaFunction)>,
    memory: Memory,
    staging: PinnedHostSlice<u8>,
    /// How many bytes of `staging` the stream may not have read yet.
    staged: usize,
    /// Whether launches are currently recorded instead of executed.
    recording: bool,
    /// Whether a kernel may begin before the previous one has ended. The kernels then wait themselves where they have to.
    pub(super) overlaps: bool,
    /// Whether weights and activations are bf16 instead of f32.
    bf16: bool,
    device: Device,
    pub(super) stream: Arc<CudaStream>,
    /// The name, such as `cuda:0`.
    pub(super) name: String,
    identity: GpuIdentity,
}

impl Driver {
    /// Compiles the kernels for a model and loads them on the GPU of a candle device.
    ///
    /// # Errors
    /// If the device is not a GPU, the kernels cannot be compiled for it, or its driver does not accept them.
    pub(crate) fn start(device: &Device, shape: KernelShape) -> Result<Self> {
        let stream = device.as_cuda_device().map_err(failed)?.cuda_stream();
        let context = stream.context();
        let name = format!("cuda:{}", context.ordinal());
        told(&name, "the GPU cannot be used", context.bind_to_thread())?;
        let (module, compiled) = compile::load(context, shape)?;
        // Looks the kernels up now: a driver with lazy loading then loads them here. It must not load them while steps are
        // recorded.
        let kernel = |name| module.load_function(name).map(|function| (name, function));
        let names = KERNELS.split(' ');
        let names = names.chain(super::own_products::KERNELS.map(|(_, name)| name));
        let kernels = names.map(kernel).collect();
        let kernels: Vec<(&str, CudaFunction)> = told(&name, "a kernel is missing", kernels)?;
        // SAFETY: the bytes are written before they are read, and every byte is a valid number.
        let staging = unsafe { context.alloc_pinned_with_flags(STAGING_BYTES, 0) };
        let staging = told(&name, "no page-locked memory", staging)?;
        let capability = told(&name, "the GPU cannot be used", context.compute_capability())?;
        let identity = identity_of(context, capability, compiled);
        let blas = Blas::new(&stream).map_err(|error| cublas_says(&name, error, ""))?;
        let mut driver = Driver {
            graphs: Vec::new(),
            blas,
            kernels,
            memory: Memory { context: context.clone(), addresses: Vec::new() },
            staging,
            staged: 0,
            recording: false,
            overlaps: false,
            bf16: shape.bf16,
            device: device.clone(),
            stream,
            name,
            identity,
        };
        let workspace = driver.allocate(WORKSPACE_BYTES)?;
        let set = driver.blas.set_workspace(workspace, WORKSPACE_BYTES);
        set.map_err(|error| cublas_says(&driver.name, error, ""))?;
        Ok(driver)
    }

    /// Returns the same driver with kernels that begin before the previous ones have ended, if the GPU supports that.
    ///
    /// # Errors
    /// If the kernels cannot be set up for it.
    pub(super) fn launching_early(mut self) -> Result<Self> {
        let capability = self.stream.context().compute_capability();
        let capability = told(&self.name, "the GPU cannot be used", capability)?;
        self.overlaps = set_up(&self.name, capability, self.kernels.iter().map(|(_, kernel)| kernel))?;
        Ok(self)
    }

    /// Makes the GPU's context current in this thread, for calls of the driver.
    fn bind(&self) -> Result<()> {
        told(&self.name, "the GPU failed", self.stream.context().bind_to_thread())
    }

    /// Like [`Driver::bind`], for calls that cannot be recorded.
    fn bind_outside(&self) -> Result<()> {
        if self.recording {
            return Err(Error::internal(&self.name, "only launches can be recorded"));
        }
        self.bind()
    }

    /// Waits until all requested work is done. Does not use cudarc's function, which may return an earlier error without waiting.
    fn wait(&mut self) -> Result<()> {
        // SAFETY: the stream exists as long as `self`.
        let waited = unsafe { result::stream::synchronize(self.stream.cu_stream()) };
        told(&self.name, "work on the GPU failed", waited)?;
        self.staged = 0;
        Ok(())
    }

    /// Writes a part that is at most as long as the staging memory.
    fn write_part(&mut self, address: u64, part: &[u8]) -> Result<()> {
        if self.staged + part.len() > STAGING_BYTES {
            self.wait()?;
        }
        let place = self.staged..self.staged + part.len();
        // This does not wait, because cudarc knows of no use of the memory.
        let staging = told(&self.name, "no page-locked memory", self.staging.as_mut_slice())?;
        let staging = &mut staging[place.clone()];
        staging.copy_from_slice(part);
        // SAFETY: the bytes do not change until the stream was waited for, and the caller's address comes from `allocate`.
        let copied = unsafe { result::memcpy_htod_async(address, staging, self.stream.cu_stream()) };
        self.staged = place.end;
        told(&self.name, "a copy to the GPU failed", copied)
    }

    /// Returns the error for a failed allocation of `what`.
    fn no_room(&self, what: &str, error: DriverError) -> Error {
        if error.0 != CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Error::input(&self.name, said(error), without_kernels());
        }
        let free = self.stream.context().mem_get_info().map_or(0, |(free, _)| free);
        let problem = format!("{} has no room for {what}, {} are free", self.name, gib(free as u64));
        Error::parameter(parameter::BATCH, problem, "give fewer rows")
    }

    /// Turns an error of recording or replaying a step into drift's error.
    fn recording<T>(&self, problem: &str, outcome: std::result::Result<T, DriverError>) -> Result<T> {
        match outcome {
            Err(error) if error.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                Err(self.no_room("a recorded step", error))
            }
            outcome => told_with(&self.name, problem, outcome, without_graphs()),
        }
    }
}

impl Gpu for Driver {
    fn identity(&self) -> Option<GpuIdentity> {
        Some(self.identity.clone())
    }

    // Not from the stream's pool, from which candle allocates: this memory exists from the start to the end of the run, so no
    // stream order is needed.
    fn allocate(&mut self, bytes: usize) -> Result<u64> {
        self.bind_outside()?;
        // The driver refuses allocations of zero bytes.
        let bytes = bytes.max(1);
        // SAFETY: the content is set below. The driver aligns allocations to 256 bytes.
        let mut taken = unsafe { result::malloc_sync(bytes) };
        if taken == Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) {
            // candle's pool returns freed memory only after a synchronisation and on request.
            self.wait()?;
            pool::trim(self.stream.context());
            // SAFETY: as above.
            taken = unsafe { result::malloc_sync(bytes) };
        }
        let address = taken.map_err(|error| self.no_room(&gib(bytes as u64), error))?;
        self.memory.addresses.push(address);
        // SAFETY: the memory has this number of bytes.
        let set = unsafe { result::memset_d8_async(address, 0, bytes, self.stream.cu_stream()) };
        told(&self.name, "memory cannot be set", set)?;
        Ok(address)
    }

    // Copies through our own page-locked memory. For all other memory the driver's manual only says that such copies may be
    // synchronous ("API synchronization behavior"), not that they have read all of it when they return.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.bind_outside()?;
        for (part, address) in bytes.chunks(STAGING_BYTES).zip((address..).step_by(STAGING_BYTES)) {
            self.write_part(address, part)?;
        }
        Ok(())
    }

    fn read(&mut self, address: u64, bytes: usize) -> Result<Vec<u8>> {
        self.bind_outside()?;
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let mut read = vec![0; bytes];
        // SAFETY: `read` exists until the stream was waited for, and the caller's address comes from `allocate`.
        let copied = unsafe { result::memcpy_dtoh_async(&mut read, address, self.stream.cu_stream()) };
        let waited = self.wait();
        told(&self.name, "work on the GPU failed", copied)?;
        waited.map(|()| read)
    }

    fn address(&mut self, tensor: &Tensor) -> Result<u64> {
        self.bind_outside()?;
        let no = |why: &str| Error::internal(&self.name, format!("a tensor {why}"));
        if !tensor.device().same_device(&self.device) {
            return Err(no("lies elsewhere"));
        }
        if !tensor.is_contiguous() {
            return Err(no("is not contiguous"));
        }
        let (storage, layout) = tensor.storage_and_layout();
        let Storage::Cuda(storage) = &*storage else { return Err(no("lies elsewhere")) };
        let (start, size) = match &storage.slice {
            CudaStorageSlice::F32(numbers) => (start_of(numbers, &self.stream), size_of::<f32>()),
            CudaStorageSlice::BF16(numbers) => (start_of(numbers, &self.stream), size_of::<u16>()),
            CudaStorageSlice::U32(numbers) => (start_of(numbers, &self.stream), size_of::<u32>()),
            _ => return Err(no("is of a type that no kernel reads")),
        };
        let address = start + (layout.start_offset() * size) as u64;
        if address.is_multiple_of(ALIGNMENT) { Ok(address) } else { Err(no("begins between two vectors")) }
    }

    fn refresh(&mut self, _tensor: &Tensor, _written: Range<usize>) -> Result<()> {
        Ok(())
    }

    // The emulator of the tests checks for all launches that the number and sizes of the arguments are those that the kernel
    // declares.
    fn launch(
        &mut self,
        kernel: &'static str,
        grid: [u32; 3],
        threads: u32,
        arguments: &[Vec<u8>],
    ) -> Result<()> {
        self.bind()?;
        let Some((_, function)) = self.kernels.iter().find(|(name, _)| *name == kernel) else {
            return Err(Error::internal(&self.name, format!("there is no kernel `{kernel}`")));
        };
        let mut words: Vec<Vec<u64>> = arguments.iter().map(|bytes| aligned(bytes)).collect();
        let mut pointers: Vec<*mut c_void> =
            words.iter_mut().map(|words| words.as_mut_ptr().cast()).collect();
        let (function, stream) = (function.cu_function(), self.stream.cu_stream());
        if self.overlaps {
            // SAFETY: as below.
            let launched = unsafe { launch_early(function, grid, threads, stream, &mut pointers) };
            return told(
                &self.name,
                format_args!("`{kernel}` over {grid:?} blocks of {threads} threads"),
                launched,
            );
        }
        // SAFETY: the driver copies the arguments before it returns. The addresses in them belong to memory that is freed after all
        // launched work, or to tensors that outlive it.
        let launched = unsafe {
            result::launch_kernel(function, grid.into(), (threads, 1, 1), 0, stream, &mut pointers)
        };
        told(&self.name, format_args!("`{kernel}` over {grid:?} blocks of {threads} threads"), launched)
    }

    fn product(&mut self, product: &Product) -> Result<()> {
        self.bind()?;
        let Product { rows, terms, columns, .. } = *product;
        if rows == 0 || columns == 0 {
            return Ok(());
        }
        let size =
            |size| c_int::try_from(size).map_err(|_| Error::internal(&self.name, "a product too large"));
        let done = self.blas.product(product, [size(rows)?, size(terms)?, size(columns)?], self.bf16);
        let what = format_args!(" to a product of [{rows}, {terms}] by [{terms}, {columns}]");
        done.map_err(|error| cublas_says(&self.name, error, what))
    }

    // From here on the stream may get only launches and products, also from candle. The preparations of cuBLAS for its first
    // product of a kind are forbidden now, so a step must run once before it is recorded.
    fn record(&mut self) -> Result<bool> {
        self.bind_outside()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.recording("steps cannot be recorded", self.stream.begin_capture(mode))?;
        self.recording = true;
        Ok(true)
    }

    fn recorded(&mut self) -> Result<usize> {
        // The recording has to end even if something failed before.
        let bound = self.bind();
        let ended = self.stream.end_capture(PLAIN);
        self.recording = false;
        bound?;
        let Some(graph) = self.recording("the step cannot be recorded", ended)? else {
            return Err(Error::internal(&self.name, "nothing was recorded"));
        };
        self.graphs.push(graph);
        Ok(self.graphs.len() - 1)
    }

    fn replay(&mut self, recording: usize) -> Result<()> {
        self.bind_outside()?;
        match self.graphs.get(recording) {
            Some(graph) => self.recording("a recorded step cannot be launched", graph.launch()),
            None => Err(Error::internal(&self.name, "there is no such recording")),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // An error here follows from an earlier one, which was reported.
        bind_again(self.stream.context());
        if self.recording {
            let _ = self.stream.end_capture(PLAIN);
        }
        let _ = self.wait();
    }
}

/// Memory of the GPU that is freed all together.
struct Memory {
    context: Arc<CudaContext>,
    addresses: Vec<CUdeviceptr>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        bind_again(&self.context);
        for address in self.addresses.drain(..) {
            // SAFETY: the address comes from the driver and is freed once. An error cannot be reported here.
            let _ = unsafe { result::free_sync(address) };
        }
    }
}

/// Makes the GPU's context current in this thread. Tries twice, because the first call of cudarc may only return an earlier error.
fn bind_again(context: &CudaContext) {
    if context.bind_to_thread().is_err() {
        let _ = context.bind_to_thread();
    }
}

/// Returns the remedy if steps cannot be recorded.
fn without_graphs() -> String {
    format!("give {} drift-without-graphs", parameter::ENGINE)
}

/// Returns the address of numbers of candle. This makes the stream wait until they are written; it is the same stream that wrote them.
fn start_of<T>(numbers: &CudaSlice<T>, stream: &CudaStream) -> u64 {
    numbers.device_ptr(stream).0
}

/// Returns the bytes of an argument as words, so that they are aligned for any number; a `Vec<u8>` may begin at any address.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let word = |part: &[u8]| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
