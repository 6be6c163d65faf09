//! Decoders of Hugging Face checkpoints on candle: Qwen3 and Llama.
//!
//! A [`Decoder`] holds the weights. A [`Cache`] holds the keys and values of the rows of a batch. Each [`Feed`] appends tokens to
//! one row, at the row's own position; rows may get different numbers of tokens in one pass. On the CPU in f32, the result for a
//! row is bit-identical whether the row runs alone or in any batch, in one pass or token by token, and with any number of threads.

mod attend;
mod attention;
mod bandwidth;
mod batch;
mod cache;
mod cgroup;
mod config;
mod constants;
pub mod cuda;
mod decoder;
mod device;
mod eos;
mod heads;
mod in_place;
mod kernels;
mod layer;
mod linear;
mod listed;
mod memory;
#[cfg(feature = "cuda")]
mod pool;
mod product;
mod rope;
mod simd;
mod synthetic;
mod tensors;
mod weights;

pub use batch::Feed;
pub use cache::{Cache, Prefix, Room, check_cache_fits};
pub use config::{Architecture, Config, Llama3Scaling};
pub use decoder::{Decoder, HiddenStates};
pub use device::{Device, GpuSteps, KernelSteps};
pub use eos::end_of_text;
pub(crate) use listed::FEW_ROWS;
pub use memory::{check_fits, checked_product};
pub(crate) use memory::{checked_sum, free_memory};
pub use synthetic::Synthetic;

use std::path::Path;

use crate::parameter;
use drift_core::job::InputHash;
use drift_core::{Error, Result};

/// Returns the error for a failed candle operation; it gives a remedy if a GPU is out of memory.
pub(crate) fn failed(error: candle_core::Error) -> Error {
    let text = error.to_string();
    // The name of this error in the CUDA driver.
    if text.contains("OUT_OF_MEMORY") {
        let remedy = format!("give {} fewer rows, or use a smaller model", parameter::BATCH);
        return Error::input("the model", "the GPU has not enough memory", remedy);
    }
    Error::input("the model", text.lines().next().unwrap_or("failed"), "")
}

/// Returns the cosines and sines of the rotary angles for `positions` positions, each `[positions, head_dim / 2]`.
pub fn rotary_tables(config: &Config, positions: usize) -> [Vec<f32>; 2] {
    let rope::Rope { cos, sin, .. } = rope::Rope::new(config, positions);
    [cos, sin]
}

/// Returns the numbers of the tensors `wanted` (names and shapes) of a checkpoint, concatenated in `f32`, and the files that they come
/// from.
///
/// # Errors
/// If a file is missing or broken or holds a number that is not finite, or if the tensors of the checkpoint are not exactly
/// `wanted`.
pub fn load_numbers<'w>(
    dir: &Path,
    wanted: impl Iterator<Item = (&'w str, &'w [usize])>,
) -> Result<(Vec<f32>, Vec<InputHash>)> {
    let mut weights = weights::Weights::load(dir, &candle_core::Device::Cpu, candle_core::DType::F32)?;
    let mut numbers = Vec::new();
    for (name, shape) in wanted {
        let tensor = weights.take(name, shape)?;
        numbers.extend(tensor.flatten_all().and_then(|tensor| tensor.to_vec1::<f32>()).map_err(failed)?);
    }
    Ok((numbers, weights.finish()?))
}
