//! What a self-check compares: logits by two ways of computing, and how far they may be apart.

use super::Options;
use super::check_report::{Doubt, NearTie};
use super::evidence::WholeRow;
use crate::model::{Config, Decoder};

/// Likely tokens that are kept of each choice as evidence.
const BEST: usize = 8;

/// What a comparison came to.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub rows: usize,
    pub choices: usize,
    pub is_drawn: bool,
    /// Whether numbers are of bf16, so that f32 may be asked.
    pub is_bf16: bool,
    pub bound: f64,
    pub largest: f64,
    /// Sums of squares of differences and of logits.
    squares: (f64, f64),
    pub in_doubt: Vec<Doubt>,
    pub near_ties: Vec<NearTie>,
    /// The first difference.
    pub problem: Option<String>,
}

impl Compared {
    /// One of so many rows.
    pub(super) fn new(decoder: &Decoder, rows: usize, options: &Options) -> Self {
        let is_bf16 = decoder.device().dtype() == candle_core::DType::BF16;
        let bound = bound(decoder.config(), is_bf16);
        Compared {
            rows,
            bound,
            is_bf16,
            is_drawn: options.sampling.temperature.is_some(),
            ..Compared::default()
        }
    }

    /// The root mean square of differences beside that of logits.
    pub(super) fn mean(&self) -> f64 {
        if self.squares.1 > 0.0 { (self.squares.0 / self.squares.1).sqrt() } else { 0.0 }
    }

    /// Keeps the first problem; whether there was one.
    pub(super) fn differs(&mut self, problem: String) -> bool {
        self.problem.get_or_insert(problem);
        true
    }

    /// Compares the logits of a row; where they differ most, and by which part of the largest logit.
    pub(super) fn logits(&mut self, device: &[f32], candle: &[f32]) -> (usize, f64) {
        let scale = candle.iter().fold(0f64, |most, logit| most.max(f64::from(logit.abs())));
        let scale = scale.max(f64::from(f32::MIN_POSITIVE));
        let mut worst = (0, 0.0);
        for (at, (device, candle)) in device.iter().zip(candle).enumerate() {
            let (difference, candle) = (f64::from(*device) - f64::from(*candle), f64::from(*candle));
            // What is no number differs as much as a record can say.
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

/// The logits of a row by the device and by candle.
#[derive(Clone, Copy)]
pub(super) struct BothLogits<'l> {
    pub device: &'l [f32],
    pub candle: &'l [f32],
    /// Whose they are; none: of the vocabulary in order.
    pub ids: Option<&'l [u32]>,
}

impl BothLogits<'_> {
    /// The id and both logits at a place.
    pub(super) fn of(&self, slot: usize) -> (u32, f32, f32) {
        (self.ids.map_or(slot as u32, |ids| ids[slot]), self.device[slot], self.candle[slot])
    }

    /// The places of the best by candle.
    pub(super) fn best(&self) -> Vec<usize> {
        let mut best: Vec<usize> = (0..self.candle.len()).collect();
        if best.len() > BEST {
            best.select_nth_unstable_by(BEST - 1, |a, b| self.candle[*b].total_cmp(&self.candle[*a]));
            best.truncate(BEST);
        }
        best
    }

    /// How much better one id is than another by candle; none if a logit is not known.
    pub(super) fn gap(&self, better: u32, worse: u32) -> Option<f32> {
        let slot = |id: u32| self.ids.map_or(Some(id as usize), |ids| ids.binary_search(&id).ok());
        Some(self.candle.get(slot(better)?)? - self.candle.get(slot(worse)?)?)
    }

    pub(super) fn whole(&self, step: usize, row: usize, in_f32: Option<Vec<f32>>) -> WholeRow {
        let (by_kernels, by_candle) = (self.device.to_vec(), self.candle.to_vec());
        WholeRow { step, row, ids: self.ids.map(<[u32]>::to_vec), by_kernels, by_candle, in_f32 }
    }
}

/// The largest difference of a logit by two ways of computing, as a part of the largest logit of its row by size, that rounding
/// explains. Numbers are rounded to their type some eight times in a layer and four times around them; these errors, of one unit
/// each, add up like the steps of a random walk, and a sum of n terms in f32 has an error of √n units of its own. Four times that is
/// allowed, since the largest of many is asked for. In bf16 what a sum in f32 adds does not count.
///
/// In bf16 that is 0.05 for 5 layers and 0.12 for 28. Most choices differ by a tenth to a third of it; but of a trained model's own
/// texts up to one in a hundred goes beyond it, by rounding alone (`tests/python/bf16_bound.py`), and then f32 says who is right.
fn bound(config: &Config, is_bf16: bool) -> f64 {
    let roundings = (8 * config.num_hidden_layers + 4) as f64;
    let terms = config.hidden_size.max(config.intermediate_size) as f64;
    let unit = if is_bf16 { 2f64.powi(-9) } else { 2f64.powi(-24) * terms.sqrt() };
    4.0 * unit * roundings.sqrt()
}
