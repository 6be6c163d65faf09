//! Checks whether something fits into memory before any of it is allocated. Sizes come from users and files, so every product is
//! checked for overflow, and a size that overflows fits nowhere.

use super::cgroup;
use super::config::Config;
use drift_core::{Error, Result};

/// The assumed memory of a machine, in bytes, if the system does not report it.
const USUAL_BYTES: u64 = 16 << 30;

/// Returns the product of sizes; `None` if it overflows.
pub fn checked_product(sizes: &[usize]) -> Option<u64> {
    sizes.iter().try_fold(1u64, |product, size| product.checked_mul(u64::try_from(*size).ok()?))
}

/// Returns the sum of sizes; `None` if one of them is `None` or the sum overflows.
pub(crate) fn checked_sum(sizes: &[Option<u64>]) -> Option<u64> {
    sizes.iter().try_fold(0u64, |sum, size| sum.checked_add((*size)?))
}

/// Refuses an allocation of `bytes` if it exceeds `free`; `bytes` is `None` if the size overflows.
///
/// # Errors
/// If it does not fit. The error names `what` and its size.
pub fn check_fits(what: &str, bytes: Option<u64>, free: u64, remedy: &str) -> Result<()> {
    if bytes.is_some_and(|bytes| bytes <= free) {
        return Ok(());
    }
    let needed = bytes.map_or_else(|| "more memory than can be counted".to_owned(), gib);
    Err(Error::input(what, format!("would take {needed}, but {} are free", gib(free)), remedy))
}

/// Formats a number of bytes as in `1.25 GiB`.
pub(super) fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / (1u64 << 30) as f64)
}

impl Config {
    /// Returns the number of weights of a decoder of this shape; `None` if it overflows.
    pub fn parameters(&self) -> Option<u64> {
        let (hidden, inner, dim) = (self.hidden_size, self.intermediate_size, self.head_dim);
        let (heads, kv_heads) = (self.num_attention_heads, self.num_key_value_heads);
        let attention = checked_product(&[2, heads.checked_add(kv_heads)?, dim, hidden]);
        // The norms of heads are also counted for Llama, which has none: these are few numbers, and the count is never too low.
        let norms = checked_sum(&[checked_product(&[2, hidden]), checked_product(&[2, dim])]);
        let layer = checked_sum(&[attention, checked_product(&[3, inner, hidden]), norms])?;
        let layers = checked_product(&[self.num_hidden_layers])?.checked_mul(layer);
        let embeddings = if self.tie_word_embeddings { 1 } else { 2 };
        checked_sum(&[
            checked_product(&[embeddings, self.vocab_size, hidden]),
            layers,
            checked_product(&[hidden]),
        ])
    }
}

/// Returns the number of bytes of the machine's memory that this process may still allocate.
pub(crate) fn free_memory() -> u64 {
    let available = available_memory().unwrap_or(USUAL_BYTES);
    [address_space(), cgroup::free_bytes()].into_iter().flatten().fold(available, u64::min)
}

/// Returns freed memory between live allocations to the system. The GNU C library does this by itself only at the end of its heap.
/// It would hold a third more than the weights after the parts of a model were stacked.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub(super) fn give_back_freed() {
    // SAFETY: the function takes no pointer, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Does nothing: other allocators return freed memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn give_back_freed() {}

/// `MemAvailable` of Linux, in bytes.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// Returns the limit of the process's address space on Linux, in bytes, if one is set.
fn address_space() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Synthetic;

    #[test]
    fn sizes_that_no_number_holds_fit_nowhere() {
        assert_eq!(checked_product(&[3, 5, 7]), Some(105));
        assert_eq!((checked_product(&[1 << 40, 1 << 40]), checked_sum(&[Some(1), None])), (None, None));
        let error = check_fits("it", None, u64::MAX, "give less").unwrap_err().to_string();
        assert!(error.starts_with("it: would take more memory than can be counted, "), "{error}");
        let error = check_fits("it", Some(3 << 30), 1 << 30, "give less").unwrap_err().to_string();
        assert_eq!(error, "it: would take 3.00 GiB, but 1.00 GiB are free; give less");
        check_fits("it", Some(3 << 30), 3 << 30, "").unwrap();
    }

    #[test]
    fn weights_are_counted() {
        let config = Config::synthetic(Synthetic::Qwen3Small);
        let parameters = config.parameters().unwrap();
        // 596 million, which its name rounds to 0.6 billion.
        assert_eq!(parameters / 100_000_000, 5);
        let endless = i32::MAX as usize;
        let config =
            Config { hidden_size: endless, num_hidden_layers: endless, intermediate_size: endless, ..config };
        assert_eq!(config.parameters(), None);
    }
}
