//! The KV cache of a batch: `[rows, kv heads, capacity, dim]` per layer for keys and for values, written in place.

use std::sync::{Arc, OnceLock};

use candle_core::{DType, Device, Result as CandleResult, Tensor};

use super::config::Config;
use super::constants::Constants;
use super::failed;
use super::memory::{checked_product, gib};
use super::rope::Rope;
use crate::parameter;
use drift_core::{Error, Result};
pub use drift_data::generation::Room;

/// A growing cache grows by at least half, and at least to the next multiple of this many positions.
const GROWTH: usize = 128;

/// The number of extra positions of a row beyond its capacity. candle's operations write keys and values there that nothing reads.
const SPARE: usize = 1;

/// The keys and values of one layer.
#[derive(Debug, Clone)]
pub(super) struct LayerCache {
    /// `[rows, kv heads, capacity + SPARE, dim]`
    pub keys: Tensor,
    /// `[rows, kv heads, capacity + SPARE, dim]`
    pub values: Tensor,
}

/// The KV cache of a batch.
#[derive(Debug)]
pub struct Cache {
    pub(super) layers: Vec<LayerCache>,
    lengths: Vec<usize>,
    capacity: usize,
    most: usize,
    /// The rotary angles of at least `most` positions.
    pub(super) rope: Arc<Rope>,
    /// Constants for candle's operations, made by the first pass that uses these.
    constants: OnceLock<Constants>,
}

/// Keys and values of a prompt, copied from one row to be put into others.
#[derive(Debug, Clone)]
pub struct Prefix {
    /// `[1, kv heads, length, dim]` per layer.
    layers: Vec<LayerCache>,
    length: usize,
}

impl Prefix {
    /// Returns the number of tokens of the prompt.
    pub fn length(&self) -> usize {
        self.length
    }
}

/// Returns the size of a cache in bytes, with the spare position of each row; `None` if the number overflows.
pub(crate) fn cache_bytes(
    config: &Config,
    bytes_per_number: usize,
    rows: usize,
    length: usize,
) -> Option<u64> {
    let Config { num_hidden_layers, num_key_value_heads, head_dim, .. } = *config;
    let length = length.checked_add(SPARE)?;
    checked_product(&[2, num_hidden_layers, num_key_value_heads, head_dim, bytes_per_number, rows, length])
}

/// Refuses a cache that does not fit into `free` bytes, and names the batch size that would fit.
///
/// # Errors
/// If it does not fit.
pub fn check_cache_fits(
    config: &Config,
    bytes_per_number: usize,
    rows: usize,
    length: usize,
    free: u64,
) -> Result<()> {
    let needed = cache_bytes(config, bytes_per_number, rows, length);
    if needed.is_some_and(|needed| needed <= free) {
        return Ok(());
    }
    let per_row = cache_bytes(config, bytes_per_number, 1, length).unwrap_or(u64::MAX).max(1);
    let problem = format!(
        "the KV cache for a batch of {rows} and {length} tokens takes {}, {} are free",
        needed.map_or_else(|| "more bytes than can be counted".to_owned(), gib),
        gib(free)
    );
    let remedy = match free / per_row {
        0 => "not even a batch of 1 fits; allow fewer tokens".to_owned(),
        fits => format!("a batch of {fits} would fit"),
    };
    Err(Error::parameter(parameter::BATCH, problem, remedy))
}

impl Cache {
    /// Returns an empty cache for `rows` rows of at most `most` tokens.
    ///
    /// # Errors
    /// If the device has no room.
    pub(super) fn new(
        config: &Config,
        (device, dtype): (&Device, DType),
        (rows, most): (usize, usize),
        room: Room,
        rope: Arc<Rope>,
    ) -> Result<Self> {
        let capacity = match room {
            Room::Static => most,
            Room::Growing => GROWTH.min(most),
        };
        let shape = (rows, config.num_key_value_heads, capacity + SPARE, config.head_dim);
        let layer = || -> CandleResult<LayerCache> {
            let keys = Tensor::zeros(shape, dtype, device)?;
            Ok(LayerCache { keys, values: Tensor::zeros(shape, dtype, device)? })
        };
        let layers = (0..config.num_hidden_layers).map(|_| layer()).collect::<CandleResult<_>>();
        let layers = layers.map_err(failed)?;
        Ok(Cache { layers, lengths: vec![0; rows], capacity, most, rope, constants: OnceLock::new() })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the number of tokens in each row.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Empties a row.
    pub fn clear(&mut self, row: usize) {
        // Keys and values need not be erased: nothing reads beyond the length, and the next text overwrites them.
        self.lengths[row] = 0;
    }

    /// Cuts a row off behind its first tokens.
    pub(crate) fn shorten(&mut self, row: usize, tokens: usize) {
        self.lengths[row] = self.lengths[row].min(tokens);
    }

    /// Adds `tokens` to the length of a row, after their keys and values were written.
    pub(super) fn advance(&mut self, row: usize, tokens: usize) {
        self.lengths[row] += tokens;
    }

    /// Returns the constants of candle's operations, on the device.
    pub(super) fn constants(&self, dtype: DType, device: &Device) -> CandleResult<&Constants> {
        if self.constants.get().is_none() {
            // If another thread was faster, its constants are the same.
            let _ = self.constants.set(Constants::new(&self.rope, self.most, dtype, device)?);
        }
        match self.constants.get() {
            Some(constants) => Ok(constants),
            None => candle_core::bail!("no constants"),
        }
    }

    /// Returns the position in every row that nothing reads.
    pub(super) fn spare(&self) -> usize {
        self.capacity
    }

    /// Returns the keys and values of each layer in turn, `[rows, kv heads, positions, dim]`; the last position is the spare one.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.layers.iter().flat_map(|layer| [&layer.keys, &layer.values])
    }

    /// Returns the number of positions that each row has room for now, including the spare one.
    pub(super) fn positions(&self) -> usize {
        self.capacity + SPARE
    }

    /// Makes room for rows of `length` tokens.
    pub(super) fn reserve(&mut self, length: usize) -> CandleResult<()> {
        if length > self.most {
            candle_core::bail!("{length} tokens in a cache for {}", self.most);
        }
        if length <= self.capacity {
            return Ok(());
        }
        // By at least half, so that the copies for a growing row add up to only a few times its length.
        let grown = (self.capacity + self.capacity / 2).max(length.next_multiple_of(GROWTH)).min(self.most);
        for layer in &mut self.layers {
            for side in [&mut layer.keys, &mut layer.values] {
                *side = side.pad_with_zeros(2, 0, grown - self.capacity)?;
            }
        }
        self.capacity = grown;
        Ok(())
    }

    /// Copies the keys and values of a row.
    ///
    /// # Errors
    /// If the device has no room.
    pub fn prefix(&self, row: usize) -> Result<Prefix> {
        let length = self.lengths[row];
        // Copies even a contiguous part, because the next text overwrites the row.
        let cut = |side: &Tensor| side.narrow(0, row, 1)?.narrow(2, 0, length)?.force_contiguous();
        let layer =
            |layer: &LayerCache| Ok(LayerCache { keys: cut(&layer.keys)?, values: cut(&layer.values)? });
        let layers = self.layers.iter().map(layer).collect::<CandleResult<_>>().map_err(failed)?;
        Ok(Prefix { layers, length })
    }

    /// Replaces the content of a row by `prefix`.
    ///
    /// # Errors
    /// If the device has no room.
    pub fn restore(&mut self, row: usize, prefix: &Prefix) -> Result<()> {
        self.reserve(prefix.length).map_err(failed)?;
        let put = |side: &Tensor, part: &Tensor| side.narrow(0, row, 1)?.slice_set(part, 2, 0);
        for (layer, part) in self.layers.iter().zip(&prefix.layers) {
            if prefix.length > 0 {
                put(&layer.keys, &part.keys).map_err(failed)?;
                put(&layer.values, &part.values).map_err(failed)?;
            }
        }
        self.lengths[row] = prefix.length;
        Ok(())
    }

    /// Replaces the content of row `to` by that of row `from`, and empties `from`.
    ///
    /// # Errors
    /// If the device has no room.
    pub fn move_row(&mut self, from: usize, to: usize) -> Result<()> {
        if from != to {
            self.restore(to, &self.prefix(from)?)?;
            self.clear(from);
        }
        Ok(())
    }
}
