//! The decode step in CUDA C: sources of the kernels, how they are compiled for a model, and what they are called with.
//!
//! Nothing here needs a GPU, and nothing here starts one. The kernels are compiled when a device is there; the tests compile
//! the same text with g++, and with NVRTC for what it takes. `docs/gpu.md` says what is known of them.
//!
//! A step is, with `slots` tokens over `rows` rows, all in device memory:
//!
//! 1. `pack` lays the unread tokens of the rows into slots;
//! 2. `embed`; for each layer a product, `attend` (behind `append_all`, where prompts are read), a product, `add_norm`, a product,
//!    `gated`, a product, and `add_norm` with the weight of the next layer; behind the last one `last_norm` for the rows whose last
//!    token was read. A product of few rows is that of `product_16` or `product_32`, whose parts the kernel behind adds; of more a
//!    library's;
//! 3. a product with the rows of the LM head that are ever drawn, or `head`;
//! 4. `choose`, or `choose_any`: one token for each of these rows, and what is forced behind it.
//!
//! Before the first step `gather` takes the rows of the LM head out, and `enter` follows what is forced behind the prompts of
//! rows that enter. The unread tokens of a row that enters are its prompt; the first of a long one may be read elsewhere.

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
pub use libraries::{CudaLibrary, cuda_libraries, install_line};
pub use own_products::ProductArguments;
pub(crate) use sampler::{RowDraw, VocabularySampler};
pub(crate) use step::{Choosing, DecodeStep, Entering, WrittenText};

use candle_core::DType;

use super::Config;
use super::device::Device;
use crate::parameter;
use drift_core::error::{Error, Result};

/// A GPU with the kernels for a model of this shape, in the type of the device.
///
/// # Errors
/// If there are none for it, they cannot be compiled, or the device is no GPU.
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

/// As with CUDA.
///
/// # Errors
/// Always.
#[cfg(not(feature = "cuda"))]
pub(crate) fn start(device: &Device, _config: &Config) -> Result<Box<dyn Gpu>> {
    Err(Error::input(device.name(), "this drift was built without CUDA", "build it with --features cuda"))
}

/// What to do where the kernels do not run.
pub(super) fn without_kernels() -> String {
    format!("give {} candle", parameter::ENGINE)
}

/// Bytes of a number of a type that the kernels take.
///
/// # Errors
/// If it is another one.
fn number_bytes(dtype: DType) -> Result<usize> {
    match dtype {
        DType::BF16 | DType::F32 => Ok(dtype.size_in_bytes()),
        other => {
            let problem = format!("there are no kernels for {}", other.as_str());
            Err(Error::input("the model", problem, "kernels take f32 and bf16"))
        }
    }
}

/// The files of a program, in their order: name and text.
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

/// Threads of a block of `attend`.
pub const ATTEND_THREADS: u32 = 128;

/// What the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelShape {
    /// Weights, activations and cache in bf16; else in f32.
    pub bf16: bool,
    /// Size of a head.
    pub head_dim: usize,
    /// Query heads of a key and value head.
    pub group: usize,
}

impl KernelShape {
    /// The shape of a model.
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

    /// The text to compile; what the compiler says names the files.
    pub fn source() -> String {
        CUDA_SOURCES.iter().map(|(name, text)| format!("#line 1 \"{name}\"\n{text}\n")).collect()
    }

    /// The macros, as options of the compiler.
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

    /// Kernels may be launched before those before them are over. What these write no kernel reads before it waits; weights nobody
    /// writes, and they alone are read by `load_once`.
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
