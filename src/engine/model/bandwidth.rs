//! The memory bandwidth of a device, measured on the model's weights (CPU) or on a copy (GPU).

use std::time::{Duration, Instant};

use candle_core::{CpuStorage, Result, Storage, Tensor};
use rayon::prelude::*;

use super::decoder::Decoder;
use super::device::Device;
use super::kernels;

/// The least number of measurements; the best one counts.
const TIMES: usize = 3;

/// The least time of the measurements on a CPU. For small weights, three readings are so short that other work could delay a thread
/// throughout.
const AT_LEAST: Duration = Duration::from_millis(100);

/// How many numbers of a CPU tensor one task reads.
const PART: usize = 1 << 16;

/// The largest number of bytes copied on a GPU, far more than its caches hold.
const COPIED_BYTES: usize = 256 << 20;

/// The number of copies that are timed together, so that they take far longer than one call and one wait.
const COPIES: usize = 8;

impl Decoder {
    /// Returns the bytes per second that the device can read; `None` if this cannot be measured. On the CPU all threads read all weights,
    /// so that weights which fit into its caches are read from there, as in a forward pass. On a GPU it is the rate of a copy, counting
    /// bytes read and bytes written.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let measured = match self.device().inner().is_cpu() {
            true => of_weights(&self.weights()),
            false => of_copy(self.device()),
        };
        // No result depends on the bandwidth, so a failed or empty measurement is not an error.
        measured.ok().flatten().filter(|rate| *rate > 0.0)
    }
}

/// Returns the bandwidth of reading all of `weights`; `None` if they are not contiguous f32 or bf16 tensors in host memory.
fn of_weights(weights: &[&Tensor]) -> Result<Option<f64>> {
    let mut best: Option<f64> = None;
    let (first, mut times) = (Instant::now(), 0);
    while times < TIMES || first.elapsed() < AT_LEAST {
        times += 1;
        let (begin, mut bytes) = (Instant::now(), 0);
        for weights in weights {
            let (storage, layout) = weights.storage_and_layout();
            let (Storage::Cpu(storage), Some((start, end))) = (&*storage, layout.contiguous_offsets()) else {
                return Ok(None);
            };
            bytes += match storage {
                CpuStorage::F32(numbers) => read(&numbers[start..end], |part| kernels::total(part).to_bits()),
                CpuStorage::BF16(numbers) => read(&numbers[start..end], |part| {
                    part.iter().fold(0, |sum, number| sum ^ u32::from(number.to_bits()))
                }),
                _ => return Ok(None),
            };
        }
        let rate = bytes as f64 / begin.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        best = Some(best.map_or(rate, |best| best.max(rate)));
    }
    Ok(best)
}

/// Reads the numbers with all threads. Returns their size in bytes.
fn read<N: Sync>(numbers: &[N], of_part: impl Fn(&[N]) -> u32 + Send + Sync) -> usize {
    let read = numbers.par_chunks(PART).map(of_part).reduce(|| 0, |a, b| a ^ b);
    // Without this use of the result, the compiler would remove the reads.
    std::hint::black_box(read);
    size_of_val(numbers)
}

/// Returns the bandwidth of copying memory on the device; the copy is smaller if little memory is free.
fn of_copy(device: &Device) -> Result<Option<f64>> {
    let free = device.free_bytes().unwrap_or(0) as usize;
    let bytes = COPIED_BYTES.min(free / 4);
    let source = Tensor::zeros(bytes / device.dtype().size_in_bytes(), device.dtype(), device.inner())?;
    let mut best: Option<f64> = None;
    for _ in 0..TIMES {
        device.inner().synchronize()?;
        // The first copies allocate memory, which the pool keeps for the later ones.
        let begin = Instant::now();
        for _ in 0..COPIES {
            drop(source.copy()?);
        }
        device.inner().synchronize()?;
        let rate = (2 * COPIES * bytes) as f64 / begin.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        best = Some(best.map_or(rate, |best| best.max(rate)));
    }
    Ok(best)
}
