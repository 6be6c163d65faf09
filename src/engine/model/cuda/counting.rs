//! Computes how much memory a decode step needs, with a device that only counts allocations.

use std::cell::Cell;
use std::ops::Range;

use candle_core::Tensor;

use super::gpu::{Gpu, Product};
use crate::model::memory::gib;
use crate::parameter;
use drift_core::{Error, Result};

/// Drivers round allocations up to a multiple of this number of bytes.
const GRANULE: u64 = 512;

/// Drivers round large allocations up to a multiple of this number of bytes.
const LARGE_GRANULE: u64 = 2 << 20;

/// Memory kept free for graphs and for what cuBLAS loads: the largest number of bytes, and the divisor of the free memory.
const RESERVE: (u64, u64) = (512 << 20, 64);

/// A device without memory that does nothing but count the allocated bytes.
pub(super) struct CountingDevice<'c>(pub &'c Cell<u64>);

impl Gpu for CountingDevice<'_> {
    fn allocate(&mut self, bytes: usize) -> Result<u64> {
        let bytes = bytes as u64;
        let granule = if bytes < LARGE_GRANULE / 2 { GRANULE } else { LARGE_GRANULE };
        self.0.set(self.0.get().saturating_add(bytes.next_multiple_of(granule)));
        Ok(GRANULE)
    }

    fn write(&mut self, _address: u64, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    fn read(&mut self, _address: u64, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }

    fn address(&mut self, _tensor: &Tensor) -> Result<u64> {
        Ok(GRANULE)
    }

    fn refresh(&mut self, _tensor: &Tensor, _written: Range<usize>) -> Result<()> {
        Ok(())
    }

    fn launch(
        &mut self,
        _kernel: &'static str,
        _grid: [u32; 3],
        _threads: u32,
        _arguments: &[Vec<u8>],
    ) -> Result<()> {
        Ok(())
    }

    fn product(&mut self, _product: &Product) -> Result<()> {
        Ok(())
    }

    fn record(&mut self) -> Result<bool> {
        Ok(false)
    }

    fn recorded(&mut self) -> Result<usize> {
        Ok(0)
    }

    fn replay(&mut self, _recording: usize) -> Result<()> {
        Ok(())
    }
}

/// Refuses steps of `rows` rows that need `wanted` bytes if they do not fit into `free` bytes, and names the batch that would fit.
/// The `cache` bytes of the KV cache are already allocated.
///
/// # Errors
/// If they do not fit.
pub(super) fn check_steps_fit(rows: usize, cache: u64, wanted: u64, free: u64) -> Result<()> {
    let (most, part) = RESERVE;
    let free = free - (free / part).min(most);
    if wanted <= free {
        return Ok(());
    }
    let problem = format!(
        "a batch of {rows} takes {} for its steps beside {} of KV cache, {} are free",
        gib(wanted),
        gib(cache),
        gib(free)
    );
    // Part of the memory does not shrink with the number of rows, so this batch may be smaller than necessary but never too large.
    let of_row = (cache / rows.max(1) as u64).max(1);
    let remedy = match (cache + free).saturating_sub(wanted) / of_row {
        0 => "give fewer rows, or allow fewer tokens".to_owned(),
        fits => format!("a batch of {fits} would fit"),
    };
    Err(Error::parameter(parameter::BATCH, problem, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told_with_the_batch_that_would() {
        check_steps_fit(8, 800, 80, 82).unwrap();
        let gib = 1 << 30;
        let told = check_steps_fit(8, 8 * gib, 2 * gib, gib).unwrap_err().to_string();
        assert!(
            told.contains(
                "a batch of 8 takes 2.00 GiB for its steps beside 8.00 GiB of KV cache, 0.98 GiB are free"
            ),
            "{told}"
        );
        assert!(told.contains("a batch of 6 would fit"), "{told}");
        let told = check_steps_fit(2, 100, 150, 20).unwrap_err().to_string();
        assert!(told.contains("give fewer rows"), "{told}");
    }
}
