//! How fast a device reads memory, measured on the weights themselves.

use std::time::{Duration, Instant};

use candle_core::{CpuStorage, Result, Storage, Tensor};
use rayon::prelude::*;

use super::decoder::Decoder;
use super::device::Device;
use super::kernels;

/// How often it is measured at least; the best counts.
const TIMES: usize = 3;

/// How long a CPU is measured at least: other work can hold a thread up for longer than small weights are read three times.
const AT_LEAST: Duration = Duration::from_millis(100);

/// Numbers of a CPU tensor that one task reads.
const PART: usize = 1 << 16;

/// The most bytes that are copied on a GPU: far more than its caches hold.
const COPIED_BYTES: usize = 256 << 20;

/// Copies that are timed together: far longer than a call and a wait take.
const COPIES: usize = 8;

impl Decoder {
    /// Bytes per second that the device reads: on the CPU all weights, by all threads, so that weights which fit into its
    /// caches are read from there as in a pass; on a GPU a copy, reading and writing. None where it cannot be measured.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let measured = match self.device().inner().is_cpu() {
            true => of_weights(&self.weights()),
            false => of_copy(self.device()),
        };
        // What is measured is of no use to a result: where it fails, or there was nothing to read, nothing is said.
        measured.ok().flatten().filter(|rate| *rate > 0.0)
    }
}

/// Reads all of `weights`.
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

/// Reads numbers by all threads, and says how many bytes that were.
fn read<N: Sync>(numbers: &[N], of_part: impl Fn(&[N]) -> u32 + Send + Sync) -> usize {
    let read = numbers.par_chunks(PART).map(of_part).reduce(|| 0, |a, b| a ^ b);
    // Without a use of the result, the compiler would leave the reading out.
    std::hint::black_box(read);
    size_of_val(numbers)
}

/// Copies a part of the device's memory; where little is free, a smaller one.
fn of_copy(device: &Device) -> Result<Option<f64>> {
    let free = device.free_bytes().unwrap_or(0) as usize;
    let bytes = COPIED_BYTES.min(free / 4);
    let source = Tensor::zeros(bytes / device.dtype().size_in_bytes(), device.dtype(), device.inner())?;
    let mut best: Option<f64> = None;
    for _ in 0..TIMES {
        device.inner().synchronize()?;
        // The first copies take the memory that the others find ready: the pool keeps it.
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
