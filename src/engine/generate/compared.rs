//! The comparison of logits in a self-check: two implementations, and the largest difference that is allowed.

use super::Options;
use super::evidence::WholeRow;
use crate::model::{Config, Decoder};
use drift_data::generation::{NearTie, RecomputedChoice};

/// The number of likely tokens that are kept as evidence for each choice.
const BEST: usize = 8;

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct StepComparison {
    pub rows: usize,
    pub choices: usize,
    pub is_drawn: bool,
    /// Whether the numbers are bf16, so that f32 can serve as reference.
    pub is_bf16: bool,
    pub bound: f64,
    pub largest: f64,
    /// The sums of the squares of the differences, and of the logits.
    squares: (f64, f64),
    pub in_doubt: Vec<RecomputedChoice>,
    pub near_ties: Vec<NearTie>,
    /// The first difference.
    pub problem: Option<String>,
}

impl StepComparison {
    /// Returns an empty comparison of `rows` rows.
    pub(super) fn new(decoder: &Decoder, rows: usize, options: &Options) -> Self {
        let is_bf16 = decoder.device().dtype() == candle_core::DType::BF16;
        let bound = bound(decoder.config(), is_bf16);
        StepComparison {
            rows,
            bound,
            is_bf16,
            is_drawn: options.sampling.temperature.is_some(),
            ..StepComparison::default()
        }
    }

    /// Returns the root mean square of the differences, as a fraction of the root mean square of the logits.
    pub(super) fn mean(&self) -> f64 {
        if self.squares.1 > 0.0 { (self.squares.0 / self.squares.1).sqrt() } else { 0.0 }
    }

    /// Keeps the problem if it is the first one. Always returns `true`.
    pub(super) fn differs(&mut self, problem: String) -> bool {
        self.problem.get_or_insert(problem);
        true
    }

    /// Compares the logits of a row. Returns the index with the largest difference, and this difference as a fraction of the
    /// largest logit.
    pub(super) fn logits(&mut self, device: &[f32], candle: &[f32]) -> (usize, f64) {
        let scale = candle.iter().fold(0f64, |most, logit| most.max(f64::from(logit.abs())));
        let scale = scale.max(f64::from(f32::MIN_POSITIVE));
        let mut worst = (0, 0.0);
        for (at, (device, candle)) in device.iter().zip(candle).enumerate() {
            let (difference, candle) = (f64::from(*device) - f64::from(*candle), f64::from(*candle));
            // NaN and infinity count as the largest difference that a record can contain.
            let part = if difference.is_finite() { difference.abs() / scale } else { f64::MAX };
            if difference.is_finite() {
                self.squares.0 += difference * difference;
                self.squares.1 += candle * candle;
            }
            if part > worst.1 {
                worst = (at, part);
            }
        }
        self.largest = self.largest.max(worst.1);
        worst
    }
}

/// The logits of a row from the device and from candle.
#[derive(Clone, Copy)]
pub(super) struct BothLogits<'l> {
    pub device: &'l [f32],
    pub candle: &'l [f32],
    /// The sorted ids of the logits; `None` if they are the whole vocabulary in order.
    pub ids: Option<&'l [u32]>,
}

impl BothLogits<'_> {
    /// Returns the id and both logits at an index.
    pub(super) fn of(&self, slot: usize) -> (u32, f32, f32) {
        (self.ids.map_or(slot as u32, |ids| ids[slot]), self.device[slot], self.candle[slot])
    }

    /// Returns the indices of candle's largest logits.
    pub(super) fn best(&self) -> Vec<usize> {
        let mut best: Vec<usize> = (0..self.candle.len()).collect();
        if best.len() > BEST {
            best.select_nth_unstable_by(BEST - 1, |a, b| self.candle[*b].total_cmp(&self.candle[*a]));
            best.truncate(BEST);
        }
        best
    }

    /// By how much candle's logit of one id exceeds that of another; `None` if a logit is not known.
    pub(super) fn gap(&self, better: u32, worse: u32) -> Option<f32> {
        let slot = |id: u32| self.ids.map_or(Some(id as usize), |ids| ids.binary_search(&id).ok());
        Some(self.candle.get(slot(better)?)? - self.candle.get(slot(worse)?)?)
    }

    pub(super) fn whole(&self, step: usize, row: usize, in_f32: Option<Vec<f32>>) -> WholeRow {
        let (by_kernels, by_candle) = (self.device.to_vec(), self.candle.to_vec());
        WholeRow { step, row, ids: self.ids.map(<[u32]>::to_vec), by_kernels, by_candle, in_f32 }
    }
}

/// Returns the largest difference of a logit between two implementations that rounding explains, as a fraction of the largest absolute
/// logit of its row. Numbers are rounded to their type about eight times per layer and four times outside the layers. These errors of one
/// unit each add up like the steps of a random walk. In f32 a sum of n terms has an additional error of √n units; in bf16 the error of
/// sums, which are f32, is negligible. Four times the result is allowed, because the largest of many differences is compared.
///
/// In bf16 the bound is 0.05 for 5 layers and 0.12 for 28. Most choices differ by a tenth to a third of it. But on a trained
/// model's own texts up to one choice in a hundred exceeds it by rounding alone (`tests/python/bf16_bound.py`). Then f32 decides
/// which implementation is right.
fn bound(config: &Config, is_bf16: bool) -> f64 {
    let roundings = (8 * config.num_hidden_layers + 4) as f64;
    let terms = config.hidden_size.max(config.intermediate_size) as f64;
    let unit = if is_bf16 { 2f64.powi(-9) } else { 2f64.powi(-24) * terms.sqrt() };
    4.0 * unit * roundings.sqrt()
}
