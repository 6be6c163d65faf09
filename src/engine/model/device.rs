//! Where a model runs, and in which type.

use std::fmt::Display;

use candle_core::{DType, Device as CandleDevice};

use super::config::Config;
use super::memory::{check_fits, free_memory};
#[cfg(feature = "cuda")]
use super::pool;
use crate::parameter;
use drift_core::error::{Error, Result};

/// How a GPU computes the steps that write text. The CPU has one way alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuSteps {
    /// By drift's kernels.
    Kernels(KernelSteps),
    /// By candle's operations: a product, a softmax and a product for attention, masks and draws on the host.
    Candle,
}

/// How drift's kernels are launched, and what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSteps {
    /// Steps are recorded as a graph and replayed; else each kernel is launched by itself.
    pub recorded: bool,
    /// They compute products of few rows, too, and each begins before the one before it is over, where the GPU can that; else
    /// products are for cuBLAS alone, and kernels run one behind the other.
    pub own_products: bool,
}

impl KernelSteps {
    /// The same with each kernel launched by itself.
    #[must_use]
    pub fn without_graphs(mut self) -> Self {
        self.recorded = false;
        self
    }

    /// The same with all products by cuBLAS.
    #[must_use]
    pub fn with_cublas(mut self) -> Self {
        self.own_products = false;
        self
    }
}

impl Default for KernelSteps {
    fn default() -> Self {
        KernelSteps { recorded: true, own_products: true }
    }
}

impl GpuSteps {
    /// How drift's kernels do them, if they do.
    pub(crate) fn by_kernels(self) -> Option<KernelSteps> {
        match self {
            GpuSteps::Kernels(steps) => Some(steps),
            GpuSteps::Candle => None,
        }
    }
}

/// A device and the type of weights and cache on it: f32 on the CPU, bf16 on CUDA. On the CPU the matrices and the cache may be
/// bf16; all else is f32 there.
#[derive(Debug, Clone)]
pub struct Device {
    name: String,
    pub(super) inner: CandleDevice,
    pub(super) dtype: DType,
    /// Of embedding, layers and LM head.
    pub(super) matrices: DType,
    /// Whether drift's own kernels for the CPU compute, not candle's operations.
    pub(super) kernels: bool,
    steps: GpuSteps,
}

impl Device {
    /// The CPU, in f32.
    pub fn cpu() -> Self {
        Device {
            name: "cpu".into(),
            inner: CandleDevice::Cpu,
            dtype: DType::F32,
            matrices: DType::F32,
            kernels: true,
            steps: GpuSteps::Candle,
        }
    }

    /// `cpu`, or `cuda:N`, in its usual type.
    ///
    /// # Errors
    /// If there is no such device, or this build cannot use it.
    pub fn parse(name: &str) -> Result<Self> {
        let Some(number) = number(name)? else { return Ok(Device::cpu()) };
        if !candle_core::utils::cuda_is_available() {
            let remedy = "build it with --features cuda";
            return Err(Error::parameter(parameter::DEVICE, "this drift was built without CUDA", remedy));
        }
        // A stream of its own: candle's default is that of the thread, and work moves between threads.
        let inner = CandleDevice::new_cuda_with_stream(number).map_err(|e| {
            let problem = format!("{name}: {}", e.to_string().lines().next().unwrap_or("failed"));
            Error::parameter(parameter::DEVICE, problem, "nvidia-smi lists the GPUs and the driver")
        })?;
        // One owner is never dropped: candle's handles of cuBLAS and cuRAND panic where they cannot be ended, as after an error of the
        // GPU, and so hide it.
        let _never_dropped = std::mem::ManuallyDrop::new(inner.clone());
        prepare(&inner);
        let (dtype, steps) = (DType::BF16, GpuSteps::Kernels(KernelSteps::default()));
        Ok(Device { name: name.to_owned(), inner, dtype, matrices: dtype, kernels: false, steps })
    }

    /// A device by its name alone, in its usual type, for what was computed there: nothing can be computed on it.
    ///
    /// # Errors
    /// If no device has such a name.
    pub fn elsewhere(name: &str) -> Result<Self> {
        let dtype = if number(name)?.is_some() { DType::BF16 } else { DType::F32 };
        let (inner, steps) = (CandleDevice::Cpu, GpuSteps::Candle);
        Ok(Device { name: name.to_owned(), inner, dtype, matrices: dtype, kernels: false, steps })
    }

    /// The same device in f32, to compare it with the CPU.
    #[must_use]
    pub fn in_f32(self) -> Self {
        Device { dtype: DType::F32, matrices: DType::F32, ..self }
    }

    /// The same device with candle's operations in place of drift's kernels, and all that goes with them: on the CPU, in f32, what
    /// otherwise runs on a GPU alone.
    #[must_use]
    pub fn without_kernels(self) -> Self {
        Device { kernels: false, steps: GpuSteps::Candle, ..self }
    }

    /// The same device with drift's kernels used in this way; a CPU is as it was.
    #[must_use]
    pub fn with_steps(self, steps: KernelSteps) -> Self {
        let steps = if self.steps == GpuSteps::Candle { self.steps } else { GpuSteps::Kernels(steps) };
        Device { steps, ..self }
    }

    /// How it computes the steps that write text.
    pub fn steps(&self) -> GpuSteps {
        self.steps
    }

    /// The same device with matrices and cache in bf16: half the bytes of f32, which is what decode steps wait for. On the CPU they
    /// are widened as they are read; sums and activations stay f32.
    #[must_use]
    pub fn in_bf16(self) -> Self {
        Device { matrices: DType::BF16, ..self }
    }

    /// The device of candle.
    pub fn inner(&self) -> &CandleDevice {
        &self.inner
    }

    /// The type of what is computed.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The type of the cache: of the matrices, if drift's own kernels for the CPU read it.
    pub fn cache_dtype(&self) -> DType {
        if self.kernels { self.matrices } else { self.dtype }
    }

    /// `cpu`, `cuda:0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of a number of the matrices, and of the cache.
    pub fn bytes_per_number(&self) -> (usize, usize) {
        (self.matrices.size_in_bytes(), self.cache_dtype().size_in_bytes())
    }

    /// The type of matrices and cache, `f32` or `bf16`.
    pub fn type_name(&self) -> &'static str {
        self.matrices.as_str()
    }

    /// Refuses the model of `place` if its weights do not fit into the memory that is free.
    ///
    /// # Errors
    /// If they do not.
    pub(crate) fn check_weights_fit(&self, place: impl Display, config: &Config) -> Result<()> {
        self.free_bytes().map_or(Ok(()), |free| self.check_weights_fit_into(free, place, config))
    }

    fn check_weights_fit_into(&self, free: u64, place: impl Display, config: &Config) -> Result<()> {
        let bytes = |number: DType| config.parameters()?.checked_mul(number.size_in_bytes() as u64);
        // On the CPU drift's kernels alone read bf16.
        let may_halve = self.matrices == DType::F32 && (self.kernels || !self.inner.is_cpu());
        let remedy = match may_halve && bytes(DType::BF16).is_some_and(|bytes| bytes <= free) {
            true => format!("give {} bf16, which takes half", parameter::DTYPE),
            false => "use a smaller model, or more memory".to_owned(),
        };
        check_fits(&format!("{place}: the weights on {}", self.name), bytes(self.matrices), free, &remedy)
    }

    /// Bytes that are free on it, if the system says.
    pub fn free_bytes(&self) -> Option<u64> {
        match &self.inner {
            CandleDevice::Cpu => Some(free_memory()),
            device => free_cuda_memory(device),
        }
    }
}

/// The number of a GPU; none of the CPU.
fn number(name: &str) -> Result<Option<usize>> {
    let number = name.strip_prefix("cuda:").and_then(|number| number.parse().ok());
    match number {
        None if name != "cpu" => Err(Error::parameter(
            parameter::DEVICE,
            format!("`{name}` is not a device"),
            "give cpu or cuda:0",
        )),
        number => Ok(number),
    }
}

/// What is to be done before the first tensor.
#[cfg(feature = "cuda")]
fn prepare(device: &CandleDevice) {
    if let Ok(device) = device.as_cuda_device() {
        pool::prepare(device.cuda_stream().context());
    }
}

/// What is to be done before the first tensor.
#[cfg(not(feature = "cuda"))]
fn prepare(_device: &CandleDevice) {}

/// Bytes that are free on a GPU, those among them that candle's pool holds.
#[cfg(feature = "cuda")]
fn free_cuda_memory(device: &CandleDevice) -> Option<u64> {
    // What candle freed is free when the stream comes to it.
    device.synchronize().ok()?;
    let stream = device.as_cuda_device().ok()?.cuda_stream();
    // The driver answers for the GPU of this thread's context.
    let (free, _) = stream.context().mem_get_info().ok()?;
    Some(free as u64 + pool::unused_bytes(stream.context()))
}

/// Bytes that are free on a GPU.
#[cfg(not(feature = "cuda"))]
fn free_cuda_memory(_device: &CandleDevice) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Synthetic;

    #[test]
    fn weights_that_do_not_fit_are_refused_with_what_helps() {
        let config = Config::synthetic(Synthetic::Qwen3Small);
        let bytes = config.parameters().unwrap() * 4;
        let refusal = |device: Device, free| {
            device.check_weights_fit_into(free, "config.json", &config).unwrap_err().to_string()
        };
        let halved = refusal(Device::cpu(), bytes / 2);
        assert!(halved.starts_with("config.json: the weights on cpu: would take 2."), "{halved}");
        assert!(halved.ends_with("; give ‘dtype’ bf16, which takes half"), "{halved}");
        for (device, free) in [
            (Device::cpu(), bytes / 2 - 1),
            (Device::cpu().without_kernels(), bytes / 2),
            (Device::cpu().in_bf16(), 1),
        ] {
            let text = refusal(device, free);
            assert!(text.ends_with("; use a smaller model, or more memory"), "{text}");
        }
        Device::cpu().check_weights_fit_into(bytes, "it", &config).unwrap();
        Device::cpu().in_bf16().check_weights_fit_into(bytes / 2, "it", &config).unwrap();
    }
}
