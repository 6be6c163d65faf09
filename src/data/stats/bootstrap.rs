//! Bootstrap intervals of means over independent items (molecules, not blocks or samples).

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use serde::{Deserialize, Serialize};

use super::interval::{Interval, LEVEL};

/// The number of resamples that reports use.
pub(crate) const RESAMPLES: u32 = 2_000;

/// Returns the percentile interval of the mean of `values`, one value per item, from `resamples` draws with replacement: B. Efron and R.
/// J. Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. For paired differences, pass the differences.
///
/// Each resample has its own random stream, so the result depends only on the values, the parameters and the seed. `None` with
/// fewer than two values, no resamples, or a value that is not finite.
pub(crate) fn bootstrap_mean(values: &[f64], resamples: u32, level: f64, seed: u64) -> Option<Interval> {
    let n = values.len();
    if n < 2 || resamples == 0 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut means: Vec<f64> = (0..resamples)
        .into_par_iter()
        .map(|resample| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            // One stream per resample, so that threads may process them in any order.
            random.set_stream(u64::from(resample));
            (0..n).map(|_| values[random.random_range(0..n)]).sum::<f64>() / n as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    Some(Interval { low: quantile(&means, tail), high: quantile(&means, 1.0 - tail) })
}

/// A mean over independent items, such as molecules.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The number of items.
    pub items: usize,
    /// Their mean.
    pub mean: f64,
    /// The interval of the mean, by [`bootstrap_mean`] at [`LEVEL`].
    pub interval: Option<Interval>,
}

impl Mean {
    /// Returns the mean of `values`, one per item; `None` without values.
    pub fn from_values(values: &[f64], seed: u64) -> Option<Mean> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let interval = bootstrap_mean(values, RESAMPLES, LEVEL, seed);
        (!values.is_empty()).then_some(Mean { items: values.len(), mean, interval })
    }
}

/// Returns the quantile of sorted values, interpolated between neighbours (R's type 7).
pub(crate) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::interval::paired;

    #[test]
    fn agrees_with_student_where_that_holds() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        // Sums of twelve uniforms are nearly normal.
        let values: Vec<f64> =
            (0..200).map(|_| (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0).collect();
        let student = paired(&values, 0.95).unwrap().interval;
        let bootstrap = bootstrap_mean(&values, 4_000, 0.95, 7).unwrap();
        assert!((student.low - bootstrap.low).abs() < 0.02 && (student.high - bootstrap.high).abs() < 0.02);
        assert_eq!(bootstrap_mean(&values, 4_000, 0.95, 7), Some(bootstrap));
        assert_ne!(bootstrap_mean(&values, 4_000, 0.95, 8), Some(bootstrap));
    }

    #[test]
    fn holds_the_truth_as_often_as_it_says() {
        let held = (0..400)
            .filter(|seed| {
                let mut random = ChaCha8Rng::seed_from_u64(*seed);
                // Skewed: the square of a uniform, mean 1/3.
                let values: Vec<f64> = (0..60).map(|_| random.random::<f64>().powi(2)).collect();
                bootstrap_mean(&values, 500, 0.95, *seed).unwrap().contains(1.0 / 3.0)
            })
            .count();
        assert!((365..=395).contains(&held), "{held} of 400");
    }

    #[test]
    fn degenerate_values() {
        assert_eq!(bootstrap_mean(&[1.0], 10, 0.95, 0), None);
        assert_eq!(bootstrap_mean(&[1.0, f64::NAN], 10, 0.95, 0), None);
        assert_eq!(bootstrap_mean(&[1.0, 2.0], 0, 0.95, 0), None);
        assert_eq!(bootstrap_mean(&[2.0, 2.0], 10, 0.95, 0), Some(Interval { low: 2.0, high: 2.0 }));
    }
}
