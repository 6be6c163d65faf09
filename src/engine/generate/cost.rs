//! The probability of a token, and the share of the distribution that a mask allowed.

use drift_core::constraint::Mask;
use drift_core::sampling::Sampling;

/// The logged values of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TokenLog {
    /// The natural logarithm of the token's probability, unmasked and at temperature 1.
    pub token: f32,
    /// The natural logarithm of the total probability of the allowed tokens, at the temperature of the draw.
    pub allowed: f64,
}

impl TokenLog {
    /// Returns the values for `token`, which was chosen under `mask`.
    pub(super) fn new(logits: &[f32], token: u32, mask: Mask<'_>, sampling: &Sampling) -> Self {
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum = |temperature: f64| total(logits.iter().copied(), best, temperature);
        let temperature = sampling.temperature.unwrap_or(1.0);
        let of_model = sum(1.0);
        let of_all = if temperature == 1.0 { of_model } else { sum(temperature) };
        let logit = logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
        TokenLog {
            // Computed in f64 up to here, because a sum over a vocabulary loses digits in f32.
            token: (f64::from(logit - best) - of_model.ln()) as f32,
            allowed: log_allowed(logits, mask, (best, of_all), temperature),
        }
    }
}

/// Σ exp((logit - best) / temperature).
fn total(logits: impl Iterator<Item = f32>, best: f32, temperature: f64) -> f64 {
    logits.map(|logit| (f64::from(logit - best) / temperature).exp()).sum()
}

/// Returns the natural logarithm of the share of the softmax of `logits / temperature` that `mask` allows, given the largest logit and
/// the sum over all logits.
fn log_allowed(logits: &[f32], mask: Mask<'_>, (best, of_all): (f32, f64), temperature: f64) -> f64 {
    let of_ids = |ids: &[u32]| -> f64 {
        let known = || ids.iter().filter_map(|id| logits.get(*id as usize).copied());
        let highest = known().fold(f32::NEG_INFINITY, f32::max);
        // Relative to the largest allowed logit, so that a small share does not underflow to 0.
        let sum = total(known(), highest, temperature);
        f64::from(highest - best) / temperature + (sum / of_all).ln()
    };
    let log = match mask {
        Mask::Any => 0.0,
        Mask::Forced(id) => of_ids(&[id]),
        Mask::Only(ids) => of_ids(ids),
        Mask::Except(ids) => {
            let known = ids.iter().filter_map(|id| logits.get(*id as usize).copied());
            let lost = total(known, best, temperature) / of_all;
            // 1 - lost is exact enough for a small `lost`; otherwise the few allowed tokens are summed directly.
            if lost < 0.5 {
                (-lost).ln_1p()
            } else {
                let mut excluded = ids.iter().copied().peekable();
                let all = (0u32..).zip(logits).map(|(id, _)| id);
                let left: Vec<u32> = all.filter(|id| excluded.next_if_eq(id).is_none()).collect();
                of_ids(&left)
            }
        }
    };
    // A probability is at most 1, also after rounding.
    log.min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_that_a_mask_leaves_is_that_of_the_softmax_at_the_temperature() {
        let logits = [1.0, -2.0, 0.5, 3.0, -90.0];
        for temperature in [0.5, 1.0, 2.0] {
            let sampling = Sampling { temperature: Some(temperature), ..Sampling::GREEDY };
            let share = |ids: &[usize]| {
                let exp = |id: &usize| (f64::from(logits[*id]) / temperature).exp();
                ids.iter().map(exp).sum::<f64>() / (0..5).map(|id| exp(&id)).sum::<f64>()
            };
            let allowed = |mask| TokenLog::new(&logits, 0, mask, &sampling).allowed;
            for (mask, ids) in [
                (Mask::Forced(1), &[1][..]),
                (Mask::Only(&[0, 2, 9]), &[0, 2]),
                (Mask::Except(&[1, 9]), &[0, 2, 3, 4]),
                (Mask::Except(&[3]), &[0, 1, 2, 4]),
                (Mask::Except(&[0, 1, 2, 3]), &[4]),
            ] {
                let expected = share(ids).ln();
                assert!((allowed(mask) - expected).abs() < 1e-12 * expected.abs().max(1.0), "{mask:?}");
            }
            for mask in [Mask::Any, Mask::Except(&[]), Mask::Except(&[7]), Mask::Only(&[0, 1, 2, 3, 4])] {
                assert_eq!(allowed(mask), 0.0, "{mask:?}");
            }
        }
        // The share underflows, but its logarithm is still finite.
        let logged = TokenLog::new(&[0.0, -2000.0], 1, Mask::Forced(1), &Sampling::GREEDY);
        assert_eq!((logged.token, logged.allowed), (-2000.0, -2000.0));
    }
}
