//! The same weights in f32 as a reference. It decides which implementation is right if bf16 logits differ by more than rounding
//! usually explains.
//!
//! Rounding does not affect all logits equally. If a trained model amplifies small differences, one unit of bf16 in an early layer
//! can change a logit by a tenth of the largest one, in any implementation (`tests/python/bf16_bound.py`). A bound that allows this
//! would miss wrong kernels. So the few choices beyond the usual bound are computed again in f32.

use super::head::rows_of_logits;
use crate::model::{Decoder, Feed, HiddenStates, Room};
use drift_core::{Error, Result};
use drift_data::generation::RecomputedChoice;

/// The kernels may be at most this many times as far from f32 as candle's logits.
const MOST_TIMES: f64 = 2.0;

/// No rounding explains a larger error than this fraction of the largest logit, however far candle's logits are off.
const MOST_OFF: f64 = 0.5;

/// A decoder and, after the first doubt, its copy in f32.
pub(super) struct F32Reference<'d> {
    decoder: &'d Decoder,
    widened: Option<Decoder>,
}

/// The answer of f32 about a choice.
pub(super) enum InF32 {
    /// All logits from which the token is chosen.
    Logits(Vec<f32>),
    /// f32 is not available, for this reason.
    NoRoom(Error),
    /// The compared numbers are f32 already.
    NotAsked,
}

impl InF32 {
    /// Describes the logit at an index.
    pub(super) fn of(&self, slot: usize) -> String {
        match self {
            InF32::Logits(logits) => format!(", in f32 {}", logits[slot]),
            InF32::NoRoom(error) => format!(" (f32 cannot be asked: {error})"),
            InF32::NotAsked => String::new(),
        }
    }

    /// Returns all logits, if they are known.
    pub(super) fn logits(self) -> Option<Vec<f32>> {
        match self {
            InF32::Logits(logits) => Some(logits),
            InF32::NoRoom(_) | InF32::NotAsked => None,
        }
    }
}

impl<'d> F32Reference<'d> {
    pub(super) fn new(decoder: &'d Decoder) -> Self {
        F32Reference { decoder, widened: None }
    }

    /// Returns the logits after some tokens, for the ids or for the whole vocabulary.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn logits(&mut self, tokens: &[u32], ids: Option<&[u32]>) -> Result<InF32> {
        let widened = match self.widened.take().map_or_else(|| self.decoder.in_f32(), Ok) {
            Ok(widened) => self.widened.insert(widened),
            // If the device failed, the next step reports that again.
            Err(error) => return Ok(InF32::NoRoom(error)),
        };
        let mut cache = widened.cache(1, tokens.len(), Room::Static)?;
        let hidden = widened.forward(&[Feed { row: 0, tokens }], &mut cache, HiddenStates::Last)?;
        Ok(InF32::Logits(rows_of_logits(widened, &hidden, ids)?.swap_remove(0)))
    }
}

/// Returns the errors of two implementations relative to f32, as fractions of the largest f32 logit.
pub(super) fn errors(device: &[f32], candle: &[f32], exact: &[f32]) -> (f64, f64) {
    let scale =
        exact.iter().fold(f64::from(f32::MIN_POSITIVE), |most, logit| most.max(f64::from(logit.abs())));
    let error = |logits: &[f32]| {
        let differences = logits.iter().zip(exact).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
        // NaN and infinity count as the largest error that a record can contain.
        differences.map(|part| if part.is_finite() { part / scale } else { f64::MAX }).fold(0.0, f64::max)
    };
    (error(device), error(candle))
}

/// Returns whether the kernels are not much further from f32 than rounding takes candle's operations.
pub(super) fn is_rounding(doubt: &RecomputedChoice) -> bool {
    doubt.kernels_off <= MOST_OFF.min(MOST_TIMES * doubt.candle_off)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Config, Device, Synthetic};

    /// Widened weights are used in the same way as the decoder's own: layouts, norms of heads, the tied LM head.
    #[test]
    fn of_a_decoder_in_f32_it_has_the_same_logits() {
        for shape in Synthetic::ALL {
            let whole = Config::synthetic(shape);
            let (hidden_size, head_dim) = (32, 16);
            let config = Config {
                vocab_size: 50,
                hidden_size,
                head_dim,
                intermediate_size: 64,
                num_hidden_layers: 2,
                num_attention_heads: 4,
                num_key_value_heads: 2,
                ..whole
            };
            let decoder = Decoder::random(config, 5, &Device::cpu().without_kernels()).unwrap();
            let tokens = [3, 1, 4, 1, 5, 9, 2, 6];
            let mut cache = decoder.cache(1, tokens.len(), Room::Static).unwrap();
            let feed = [Feed { row: 0, tokens: &tokens }];
            let hidden = decoder.forward(&feed, &mut cache, HiddenStates::Last).unwrap();
            let mut reference = F32Reference::new(&decoder);
            for ids in [None, Some(&[7, 20, 41][..])] {
                let logits = match ids {
                    Some(ids) => decoder.logits_of(&hidden, ids),
                    None => decoder.logits(&hidden),
                };
                let expected: Vec<Vec<f32>> = logits.unwrap().to_vec2().unwrap();
                assert_eq!([reference.logits(&tokens, ids).unwrap().logits().unwrap()], expected[..]);
            }
        }
    }

    #[test]
    fn the_way_that_is_further_from_f32_is_wrong() {
        let doubt = |device: &[f32], candle: &[f32]| {
            let (kernels_off, candle_off) = errors(device, candle, &[10.0, -4.0, 3.0]);
            RecomputedChoice { row: 0, position: 0, id: 0, kernels_off, candle_off }
        };
        // Candle's logits are off, or both are.
        assert!(is_rounding(&doubt(&[10.0, -4.1, 3.0], &[10.0, -4.0, 4.0])));
        assert!(is_rounding(&doubt(&[11.0, -4.0, 3.0], &[9.0, -4.0, 3.0])));
        // The kernels' logits are off; NaN is never right.
        assert!(!is_rounding(&doubt(&[10.0, -4.0, 4.0], &[10.0, -4.1, 3.0])));
        assert!(!is_rounding(&doubt(&[f32::NAN, -4.0, 3.0], &[10.0, -4.0, 4.0])));
        // If candle's logits are NaN, the kernels are only compared with f32.
        assert!(is_rounding(&doubt(&[10.0, -4.1, 3.0], &[f32::NAN; 3])));
        assert!(!is_rounding(&doubt(&[2.0, -4.0, 3.0], &[f32::NAN; 3])));
        let off = doubt(&[10.0, -5.0, 3.0], &[10.0, -4.0, 3.5]);
        assert!((off.kernels_off - 0.1).abs() < 1e-9 && (off.candle_off - 0.05).abs() < 1e-9, "{off:?}");
    }
}
