//! The decode step in CUDA C: the sources of the kernels, their compilation for a model, and their arguments.
//!
//! The sources need no GPU to be built and tested: the kernels are compiled only when a GPU is started. The tests compile the same
//! sources with g++, and with NVRTC to check that it accepts them. `docs/notes/gpu-step.md` describes the design, `docs/gpu.md` the measurements.
//!
//! A step reads tokens in `slots` slots for `rows` rows, all in device memory:
//!
//! 1. `pack` puts the unread tokens of the rows into slots;
//! 2. `embed`; then for each layer a product, `attend` (after `append_all`, if prompts are read), a product, `add_norm`, a product,
//!    `gated`, a product, and `add_norm` with the weight of the next layer; after the last layer `last_norm` for the rows whose last
//!    token was read. Products of few rows are done by `product_16` or `product_32`, and the next kernel adds up their parts;
//!    products of more rows are done by a library;
//! 3. a product with the rows of the LM head that can be drawn at all, or `head`;
//! 4. `choose` or `choose_any`: one token for each of these rows, and the tokens that are forced after it.
//!
//! Before the first step, `gather` copies the needed rows of the LM head. When rows enter, `enter` writes the tokens that are
//! forced after their prompts. The unread tokens of a row that enters are its prompt; the beginning of a long prompt may have been
//! read elsewhere.

mod abi;
#[cfg(feature = "cuda")]
mod blas;
#[cfg(feature = "cuda")]
mod compile;
mod counting;
#[cfg(feature = "cuda")]
mod driver;
#[cfg(feature = "cuda")]
mod early;
mod folder;
mod gpu;
#[cfg(feature = "cuda")]
mod identity;
mod layers;
mod libraries;
mod look;
mod own_products;
mod products;
mod sampler;
mod step;
mod width;

pub use abi::{
    AttentionArguments, BatchArguments, DeviceRow, DeviceRun, DrawArguments, RowEnd, RowPrompt,
    SumsArguments, TableArguments, WorkDone,
};
pub use folder::device_folder;
pub use gpu::{Gpu, GpuIdentity, Product};
pub use libraries::CudaLibrary;
pub(crate) use libraries::{cuda_libraries, install_line};
pub use own_products::ProductArguments;
pub(crate) use sampler::{RowDraw, VocabularySampler};
pub(crate) use step::{DecodeStep, EnteringText, TokenRule, WrittenText};

use candle_core::DType;

use super::Config;
use super::device::Device;
use crate::parameter;
use drift_core::{Error, Result};

/// Starts a GPU with the kernels for a model of this shape, in the type of the device.
///
/// # Errors
/// If there are no kernels for the shape, they cannot be compiled, or the device is not a GPU.
#[cfg(feature = "cuda")]
pub(crate) fn start(device: &Device, config: &Config) -> Result<Box<dyn Gpu>> {
    let shape = KernelShape::from_config(config, device.dtype() == DType::BF16)?;
    let driver = driver::Driver::start(device.inner(), shape)?;
    let driver = match device.steps().by_kernels() {
        Some(steps) if steps.own_products => driver.launching_early()?,
        _ => driver,
    };
    Ok(Box::new(driver))
}

/// Without CUDA there is no GPU to start.
///
/// # Errors
/// Always.
#[cfg(not(feature = "cuda"))]
pub(crate) fn start(device: &Device, _config: &Config) -> Result<Box<dyn Gpu>> {
    Err(Error::input(device.name(), "this drift was built without CUDA", "build it with --features cuda"))
}

/// Returns the remedy if the kernels do not run.
pub(super) fn without_kernels() -> String {
    format!("give {} candle", parameter::ENGINE)
}

/// Returns the size in bytes of a number of a type that the kernels support.
///
/// # Errors
/// If the kernels do not support the type.
fn number_bytes(dtype: DType) -> Result<usize> {
    match dtype {
        DType::BF16 | DType::F32 => Ok(dtype.size_in_bytes()),
        other => {
            let problem = format!("there are no kernels for {}", other.as_str());
            Err(Error::input("the model", problem, "kernels take f32 and bf16"))
        }
    }
}

/// The source files of a program in their order: name and text.
pub const CUDA_SOURCES: &[(&str, &str)] = &[
    ("prelude.cu", include_str!("prelude.cu")),
    ("ptx.cu", include_str!("ptx.cu")),
    ("product.cu", include_str!("product.cu")),
    ("sums.cu", include_str!("sums.cu")),
    ("layer.cu", include_str!("layer.cu")),
    ("append.cu", include_str!("append.cu")),
    ("attend.cu", include_str!("attend.cu")),
    ("noise.cu", include_str!("noise.cu")),
    ("sample.cu", include_str!("sample.cu")),
    ("automaton.cu", include_str!("automaton.cu")),
    ("any.cu", include_str!("any.cu")),
    ("pack.cu", include_str!("pack.cu")),
];

/// The number of threads of a block of `attend`.
pub const ATTEND_THREADS: u32 = 128;

/// The model properties for which the kernels are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelShape {
    /// Whether weights, activations and cache are bf16 instead of f32.
    pub bf16: bool,
    /// The size of a head.
    pub head_dim: usize,
    /// The number of query heads per key and value head.
    pub group: usize,
}

impl KernelShape {
    /// Returns the shape of a model.
    ///
    /// # Errors
    /// If there are no kernels for it.
    pub fn from_config(config: &Config, bf16: bool) -> Result<Self> {
        let shape = KernelShape { bf16, head_dim: config.head_dim, group: config.group_size() };
        for (what, size) in
            [("hidden states", config.hidden_size), ("inner states", config.intermediate_size)]
        {
            if !size.is_multiple_of(4) {
                let problem = format!("there are no kernels for {what} of {size} numbers");
                return Err(Error::input("the model", problem, "kernels take multiples of 4"));
            }
        }
        let has_vectors = shape.head_dim.is_multiple_of(8) && (8..=128).contains(&shape.head_dim);
        if has_vectors && (1..=8).contains(&shape.group) {
            return Ok(shape);
        }
        let problem = format!(
            "there are no kernels for heads of {} and {} query heads for each key and value head",
            shape.head_dim, shape.group
        );
        Err(Error::input(
            "the model",
            problem,
            "kernels take heads of a multiple of 8 numbers, at most 128, and at most 8 to one",
        ))
    }

    /// Returns the source to compile. Messages of the compiler name the original files.
    pub fn source() -> String {
        CUDA_SOURCES.iter().map(|(name, text)| format!("#line 1 \"{name}\"\n{text}\n")).collect()
    }

    /// Returns the macros, as compiler options.
    pub fn options(self) -> [String; 3] {
        [
            format!("-DDRIFT_BF16={}", u8::from(self.bf16)),
            format!("-DDRIFT_HEAD_DIM={}", self.head_dim),
            format!("-DDRIFT_GROUP={}", self.group),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernels may be launched before the previous ones have ended. They must not read memory that a previous kernel writes before
    /// they wait. No kernel writes weights, and only weights are read by `load_once`.
    #[test]
    fn kernels_wait_for_those_before_them() {
        let mut kernels = 0;
        for (name, text) in CUDA_SOURCES {
            for kernel in text.split("\nKERNEL(").skip(1) {
                let body = kernel.split_once("{\n").unwrap().1.trim_start();
                let waits = body.starts_with("begin();");
                let begins = waits || body.starts_with("let_others_begin();") && body.contains("product<");
                assert!(begins, "{name}: {kernel}");
                kernels += 1;
            }
            assert_eq!(text.contains("load_once("), ["ptx.cu", "product.cu"].contains(name), "{name}");
        }
        assert_eq!(kernels, 14);
        let (_, product) = CUDA_SOURCES.iter().find(|(name, _)| *name == "product.cu").unwrap();
        let before_waiting =
            product.split_once("wait_for_others();").unwrap().0.rsplit_once("template").unwrap().1;
        assert!(!before_waiting.contains("of.x") && !before_waiting.contains("of.out"), "{before_waiting}");
        assert!(before_waiting.contains("load_once("));
    }

    #[test]
    fn sources_are_whole_short_and_without_headers() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("model/cuda");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".cu"))
            .collect();
        let mut listed: Vec<&str> = CUDA_SOURCES.iter().map(|(name, _)| *name).collect();
        names.sort();
        listed.sort_unstable();
        assert_eq!(names, listed);
        for (name, text) in CUDA_SOURCES {
            assert!(text.lines().count() <= 420 && text.starts_with("//"), "{name}");
            assert!(!text.contains("#include"), "{name}: NVRTC has no headers");
        }
    }
}
