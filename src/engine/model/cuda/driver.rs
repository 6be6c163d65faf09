//! A GPU by its driver, NVRTC and cuBLAS. All work goes to candle's own stream of the device, so that it is done behind what candle
//! was told before, and before what candle is told after.
//!
//! The events by which cudarc keeps several streams apart are not needed on one. What is launched, copied or multiplied here goes
//! straight to the driver and records none, so that there are none in a graph either, where events from outside are errors.
//! Candle frees its memory on the same stream, and so behind all that was launched before.

// The driver and cuBLAS are C: what they are handed by address, no type can check.
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
use drift_core::error::{Error, Result};

/// The names of the kernels.
const KERNELS: &str =
    "embed add_norm last_norm gated gather head append_all attend enter choose choose_any pack";

/// Page-locked memory of the host that writes go through.
const STAGING_BYTES: usize = 1 << 20;

/// What NVIDIA recommends for cuBLAS on Hopper; older GPUs need less.
const WORKSPACE_BYTES: usize = 32 << 20;

/// What tensors' addresses are multiples of: `attend` reads so many bytes at once.
const ALIGNMENT: u64 = 16;

/// No option, of those that a graph can be made with.
const PLAIN: CUgraphInstantiate_flags = CUgraphInstantiate_flags(0);

/// A GPU by the driver, NVRTC and cuBLAS. Its parts go in this order: what uses memory before the memory.
pub(crate) struct Driver {
    graphs: Vec<CudaGraph>,
    blas: Blas,
    pub(super) kernels: Vec<(&'static str, CudaFunction)>,
    memory: Memory,
    staging: PinnedHostSlice<u8>,
    /// Bytes of `staging` that the stream may not have read yet.
    staged: usize,
    /// Whether launches are recorded, not done.
    recording: bool,
    /// Whether kernels begin before those before them are over; they wait for these themselves, once they have to.
    pub(super) overlaps: bool,
    /// Weights and what goes between kernels are bf16; else f32.
    bf16: bool,
    device: Device,
    pub(super) stream: Arc<CudaStream>,
    /// `cuda:0`
    pub(super) name: String,
    identity: GpuIdentity,
}

impl Driver {
    /// The kernels for a model, compiled and loaded on the GPU of a device of candle's.
    ///
    /// # Errors
    /// If the device is no GPU, the kernels cannot be compiled for it, or its driver does not take them.
    pub(crate) fn start(device: &Device, shape: KernelShape) -> Result<Self> {
        let stream = device.as_cuda_device().map_err(failed)?.cuda_stream();
        let context = stream.context();
        let name = format!("cuda:{}", context.ordinal());
        told(&name, "the GPU cannot be used", context.bind_to_thread())?;
        let (module, compiled) = compile::load(context, shape)?;
        // Asked for by name now: a driver that loads late does so here, which it may not while steps are recorded.
        let kernel = |name| module.load_function(name).map(|function| (name, function));
        let names = KERNELS.split(' ');
        let names = names.chain(super::own_products::KERNELS.map(|(_, name)| name));
        let kernels = names.map(kernel).collect();
        let kernels: Vec<(&str, CudaFunction)> = told(&name, "a kernel is missing", kernels)?;
        // SAFETY: the bytes are written before they are read, and any bytes are numbers.
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

    /// The same whose kernels begin before those before them are over, where the GPU can that.
    ///
    /// # Errors
    /// If kernels cannot be set up for it.
    pub(super) fn launching_early(mut self) -> Result<Self> {
        let capability = self.stream.context().compute_capability();
        let capability = told(&self.name, "the GPU cannot be used", capability)?;
        self.overlaps = set_up(&self.name, capability, self.kernels.iter().map(|(_, kernel)| kernel))?;
        Ok(self)
    }

    /// Makes the GPU that of this thread, for the driver's calls.
    fn bind(&self) -> Result<()> {
        told(&self.name, "the GPU failed", self.stream.context().bind_to_thread())
    }

    /// The same, for what cannot be recorded.
    fn bind_outside(&self) -> Result<()> {
        if self.recording {
            return Err(Error::internal(&self.name, "only launches can be recorded"));
        }
        self.bind()
    }

    /// Waits until all is done that was asked for. Not by cudarc, which may tell an error of before and not wait.
    fn wait(&mut self) -> Result<()> {
        // SAFETY: the stream is there as long as `self`.
        let waited = unsafe { result::stream::synchronize(self.stream.cu_stream()) };
        told(&self.name, "work on the GPU failed", waited)?;
        self.staged = 0;
        Ok(())
    }

    /// A part of what is written, at most all of the staging memory.
    fn write_part(&mut self, address: u64, part: &[u8]) -> Result<()> {
        if self.staged + part.len() > STAGING_BYTES {
            self.wait()?;
        }
        let place = self.staged..self.staged + part.len();
        // This waits for nothing: cudarc knows of no use of the memory.
        let staging = told(&self.name, "no page-locked memory", self.staging.as_mut_slice())?;
        let staging = &mut staging[place.clone()];
        staging.copy_from_slice(part);
        // SAFETY: the bytes stay as they are until the stream was waited for, and the address is the caller's, of `allocate`.
        let copied = unsafe { result::memcpy_htod_async(address, staging, self.stream.cu_stream()) };
        self.staged = place.end;
        told(&self.name, "a copy to the GPU failed", copied)
    }

    /// Memory for something that the driver did not give.
    fn no_room(&self, what: &str, error: DriverError) -> Error {
        if error.0 != CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Error::input(&self.name, said(error), without_kernels());
        }
        let free = self.stream.context().mem_get_info().map_or(0, |(free, _)| free);
        let problem = format!("{} has no room for {what}, {} are free", self.name, gib(free as u64));
        Error::parameter(parameter::BATCH, problem, "give fewer rows")
    }

    /// What a call came to that records or replays a step.
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

    // Not from the pool of the stream, which candle takes from: memory that is there from start to end needs no order.
    fn allocate(&mut self, bytes: usize) -> Result<u64> {
        self.bind_outside()?;
        // The driver gives nothing where nothing is wanted.
        let bytes = bytes.max(1);
        // SAFETY: what is in it is set below. The driver gives multiples of 256 bytes.
        let mut taken = unsafe { result::malloc_sync(bytes) };
        if taken == Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) {
            // What candle has freed its pool gives back when the stream was waited for, and it is told to.
            self.wait()?;
            pool::trim(self.stream.context());
            // SAFETY: as above.
            taken = unsafe { result::malloc_sync(bytes) };
        }
        let address = taken.map_err(|error| self.no_room(&gib(bytes as u64), error))?;
        self.memory.addresses.push(address);
        // SAFETY: the memory has so many bytes.
        let set = unsafe { result::memset_d8_async(address, 0, bytes, self.stream.cu_stream()) };
        told(&self.name, "memory cannot be set", set)?;
        Ok(address)
    }

    // By page-locked memory of our own. Of copies from any other memory the driver's manual says that they may be synchronous
    // ("API synchronization behavior"), not that they have read all of it when they return.
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
        // SAFETY: `read` is there until the stream was waited for, and the address is the caller's, of `allocate`.
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

    // Whether the arguments are as many and as long as a kernel declares, the emulator of the tests checks for all launches.
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
        // SAFETY: the driver copies the arguments before it returns. The addresses in them are of memory that goes after all that
        // was launched, or of tensors that outlive it.
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

    // From here on the stream must get nothing but launches and products, of candle's neither. What cuBLAS makes ready at its
    // first product of a kind it may not make ready now: a step has to be done before it is recorded.
    fn record(&mut self) -> Result<bool> {
        self.bind_outside()?;
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.recording("steps cannot be recorded", self.stream.begin_capture(mode))?;
        self.recording = true;
        Ok(true)
    }

    fn recorded(&mut self) -> Result<usize> {
        // Whatever failed before: the recording ends.
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
        // What fails here failed before, and was told.
        bind_again(self.stream.context());
        if self.recording {
            let _ = self.stream.end_capture(PLAIN);
        }
        let _ = self.wait();
    }
}

/// Memory of the GPU, freed all together.
struct Memory {
    context: Arc<CudaContext>,
    addresses: Vec<CUdeviceptr>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        bind_again(&self.context);
        for address in self.addresses.drain(..) {
            // SAFETY: it is the driver's, and freed once. Nobody is left to tell if it is not.
            let _ = unsafe { result::free_sync(address) };
        }
    }
}

/// Makes the GPU that of this thread. In place of doing so cudarc may tell an error of before, once.
fn bind_again(context: &CudaContext) {
    if context.bind_to_thread().is_err() {
        let _ = context.bind_to_thread();
    }
}

/// What to do where steps cannot be recorded.
fn without_graphs() -> String {
    format!("give {} drift-without-graphs", parameter::ENGINE)
}

/// Where the numbers of candle lie. The stream is told to wait until they are written; it is the one that wrote them.
fn start_of<T>(numbers: &CudaSlice<T>, stream: &CudaStream) -> u64 {
    numbers.device_ptr(stream).0
}

/// The bytes of an argument at an address that suits any number: those of a `Vec<u8>` may lie anywhere.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let word = |part: &[u8]| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
