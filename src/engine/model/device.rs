//! The device on which a model runs, and its number types.

use std::fmt::Display;

use candle_core::{DType, Device as CandleDevice};

use super::config::Config;
use super::memory::{check_fits, free_memory};
#[cfg(feature = "cuda")]
use super::pool;
use crate::parameter;
use drift_core::{Error, Result};

/// The way in which a GPU computes decode steps. The CPU has only one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuSteps {
    /// With drift's kernels.
    Kernels(KernelSteps),
    /// With candle's operations: attention is a product, a softmax and a product; masks and draws are on the host.
    Candle,
}

/// How drift's kernels are launched, and whether they do the matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSteps {
    /// Whether steps are recorded as a CUDA graph and replayed. If not, each kernel is launched by itself.
    pub recorded: bool,
    /// Whether drift's kernels also do the matrix products of few rows, and each kernel begins before the previous one has ended,
    /// where the GPU supports that. If not, cuBLAS does all products, and each kernel waits for the previous one to end.
    pub own_products: bool,
}

impl KernelSteps {
    /// Returns the same settings with each kernel launched by itself.
    #[must_use]
    pub(crate) fn without_graphs(mut self) -> Self {
        self.recorded = false;
        self
    }

    /// Returns the same settings with all products by cuBLAS.
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
    /// Returns the settings of drift's kernels, if these compute the steps.
    pub(crate) fn by_kernels(self) -> Option<KernelSteps> {
        match self {
            GpuSteps::Kernels(steps) => Some(steps),
            GpuSteps::Candle => None,
        }
    }
}

/// A device, with the types of weights and cache on it: by default f32 on the CPU and bf16 on CUDA. On the CPU the matrices and the
/// cache may be bf16; everything else is f32 there.
#[derive(Debug, Clone)]
pub struct Device {
    name: String,
    pub(super) inner: CandleDevice,
    pub(super) dtype: DType,
    /// The type of the embedding, the layers' matrices and the LM head.
    pub(super) matrices: DType,
    /// Whether drift's own CPU kernels compute, instead of candle's operations.
    pub(super) kernels: bool,
    steps: GpuSteps,
}

impl Device {
    /// Returns the CPU, in f32.
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

    /// Returns the device `cpu` or `cuda:N`, in its default type.
    ///
    /// # Errors
    /// If there is no such device, or this build cannot use it.
    pub fn parse(name: &str) -> Result<Self> {
        let Some(number) = number(name)? else { return Ok(Device::cpu()) };
        if !candle_core::utils::cuda_is_available() {
            let remedy = "build it with --features cuda";
            return Err(Error::parameter(parameter::DEVICE, "this drift was built without CUDA", remedy));
        }
        // A separate stream, because candle's default stream belongs to a thread, and work moves between threads.
        let inner = CandleDevice::new_cuda_with_stream(number).map_err(|e| {
            let problem = format!("{name}: {}", e.to_string().lines().next().unwrap_or("failed"));
            Error::parameter(parameter::DEVICE, problem, "nvidia-smi lists the GPUs and the driver")
        })?;
        // One handle is never dropped: candle's handles of cuBLAS and cuRAND panic if they cannot be destroyed, for example after
        // an error of the GPU. The panic would hide that error.
        let _never_dropped = std::mem::ManuallyDrop::new(inner.clone());
        prepare(&inner);
        let (dtype, steps) = (DType::BF16, GpuSteps::Kernels(KernelSteps::default()));
        Ok(Device { name: name.to_owned(), inner, dtype, matrices: dtype, kernels: false, steps })
    }

    /// Returns a device of another machine, by name and in its default type, for results that were computed there. Nothing can be
    /// computed on it.
    ///
    /// # Errors
    /// If `name` is not the name of a device.
    pub fn elsewhere(name: &str) -> Result<Self> {
        let dtype = if number(name)?.is_some() { DType::BF16 } else { DType::F32 };
        let (inner, steps) = (CandleDevice::Cpu, GpuSteps::Candle);
        // As there, because the types of a model's numbers depend on it.
        let kernels = dtype == DType::F32;
        Ok(Device { name: name.to_owned(), inner, dtype, matrices: dtype, kernels, steps })
    }

    /// Returns the same device in f32, to compare it with the CPU.
    #[must_use]
    pub fn in_f32(self) -> Self {
        Device { dtype: DType::F32, matrices: DType::F32, ..self }
    }

    /// Returns the same device with candle's operations instead of drift's kernels. On the CPU, in f32, this runs code that otherwise
    /// runs only on a GPU.
    #[must_use]
    pub fn without_kernels(self) -> Self {
        Device { kernels: false, steps: GpuSteps::Candle, ..self }
    }

    /// Returns the same device with these settings for drift's kernels. A device without drift's GPU kernels is returned unchanged.
    #[must_use]
    pub(crate) fn with_steps(self, steps: KernelSteps) -> Self {
        let steps = if self.steps == GpuSteps::Candle { self.steps } else { GpuSteps::Kernels(steps) };
        Device { steps, ..self }
    }

    /// Returns the way in which the device computes decode steps.
    pub fn steps(&self) -> GpuSteps {
        self.steps
    }

    /// Returns the same device with matrices and cache in bf16. This halves the bytes that a decode step reads, and decode steps are
    /// bound by memory. On the CPU the numbers are widened when they are read; sums and activations stay f32.
    #[must_use]
    pub fn in_bf16(self) -> Self {
        Device { matrices: DType::BF16, ..self }
    }

    /// Returns the device as candle knows it.
    pub fn inner(&self) -> &CandleDevice {
        &self.inner
    }

    /// Returns the type of activations.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the type of the KV cache. It is the type of the matrices if drift's own CPU kernels read the cache.
    pub(crate) fn cache_dtype(&self) -> DType {
        if self.kernels { self.matrices } else { self.dtype }
    }

    /// Returns the name, such as `cpu` or `cuda:0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes per number of the matrices, and of the cache.
    pub(crate) fn bytes_per_number(&self) -> (usize, usize) {
        (self.matrices.size_in_bytes(), self.cache_dtype().size_in_bytes())
    }

    /// Returns the type of the matrices, `f32` or `bf16`.
    pub fn type_name(&self) -> &'static str {
        self.matrices.as_str()
    }

    /// Refuses the model of `place` if its weights do not fit into the free memory.
    ///
    /// # Errors
    /// If they do not fit.
    pub(crate) fn check_weights_fit(&self, place: impl Display, config: &Config) -> Result<()> {
        self.free_bytes().map_or(Ok(()), |free| self.check_weights_fit_into(free, place, config))
    }

    fn check_weights_fit_into(&self, free: u64, place: impl Display, config: &Config) -> Result<()> {
        let bytes = |number: DType| config.parameters()?.checked_mul(number.size_in_bytes() as u64);
        // On the CPU only drift's kernels read bf16.
        let may_halve = self.matrices == DType::F32 && (self.kernels || !self.inner.is_cpu());
        let remedy = match may_halve && bytes(DType::BF16).is_some_and(|bytes| bytes <= free) {
            true => format!("give {} bf16, which takes half", parameter::DTYPE),
            false => "use a smaller model, or more memory".to_owned(),
        };
        check_fits(&format!("{place}: the weights on {}", self.name), bytes(self.matrices), free, &remedy)
    }

    /// Returns the number of free bytes on the device, if the system reports it.
    pub fn free_bytes(&self) -> Option<u64> {
        match &self.inner {
            CandleDevice::Cpu => Some(free_memory()),
            device => free_cuda_memory(device),
        }
    }
}

/// Returns the number of a GPU, or `None` for the CPU.
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

/// Prepares the device before the first tensor is made.
#[cfg(feature = "cuda")]
fn prepare(device: &CandleDevice) {
    if let Ok(device) = device.as_cuda_device() {
        pool::prepare(device.cuda_stream().context());
    }
}

/// Does nothing without CUDA.
#[cfg(not(feature = "cuda"))]
fn prepare(_device: &CandleDevice) {}

/// Returns the number of free bytes on a GPU, including free bytes in candle's pool.
#[cfg(feature = "cuda")]
fn free_cuda_memory(device: &CandleDevice) -> Option<u64> {
    // Waits, because memory that candle freed only becomes free when the stream reaches this point.
    device.synchronize().ok()?;
    let stream = device.as_cuda_device().ok()?.cuda_stream();
    // The driver reports for the GPU of this thread's context.
    let (free, _) = stream.context().mem_get_info().ok()?;
    Some(free as u64 + pool::unused_bytes(stream.context()))
}

/// Unknown without CUDA.
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
