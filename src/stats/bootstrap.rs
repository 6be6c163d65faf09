//! The bootstrap: confidence intervals of means over molecules, without a formula for their distribution.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;

use super::interval::Interval;

/// Resamples drawn by default; the ends of a 95 % interval then stand on 250 resamples each.
pub const RESAMPLES: usize = 10_000;

/// A mean with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    /// Items, such as molecules.
    pub items: usize,
    /// Their mean.
    pub mean: f64,
    /// The percentile interval of the mean.
    pub interval: Interval,
}

/// The mean of `values`, one per independent item, with the percentile bootstrap interval at `level`.
///
/// `RESAMPLES` means of as many values drawn with replacement; the interval ends at their `(1 ± level)/2` quantiles:
/// B. Efron, Ann. Statist. 7 (1979) 1; Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3.
/// Differences of pairs give the paired form. Each resample has its own random stream of `seed`, so that threads don't
/// matter. None without values or with one that is not finite.
pub fn bootstrap_mean(values: &[f64], level: f64, seed: u64) -> Option<Mean> {
    let n = values.len();
    if n == 0 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut means: Vec<f64> = (0..RESAMPLES as u64)
        .into_par_iter()
        .map(|resample| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(resample);
            (0..n).map(|_| values[rng.random_range(0..n)]).sum::<f64>() / n as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| means[((share * RESAMPLES as f64) as usize).min(RESAMPLES - 1)];
    let tail = (1.0 - level) / 2.0;
    let mean = values.iter().sum::<f64>() / n as f64;
    Some(Mean { items: n, mean, interval: Interval { low: at(tail), high: at(1.0 - tail) } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let held = (0..200)
            .filter(|&trial| {
                // Skewed, with mean 1.
                let values: Vec<f64> = (0..60).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
                bootstrap_mean(&values, 0.95, trial).unwrap().interval.contains(1.0)
            })
            .count();
        // 95 % less what skewness costs at 60 items.
        assert!((176..=198).contains(&held), "{held} of 200");
    }

    #[test]
    fn it_agrees_with_the_formula_for_the_normal_mean() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let values: Vec<f64> =
            (0..2000).map(|_| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0).collect();
        let got = bootstrap_mean(&values, 0.95, 0).unwrap();
        let error = (values.iter().map(|v| (v - got.mean).powi(2)).sum::<f64>() / 1999.0 / 2000.0).sqrt();
        assert!(((got.interval.high - got.mean) / error - 1.96).abs() < 0.08);
        assert!(((got.mean - got.interval.low) / error - 1.96).abs() < 0.08);
    }

    #[test]
    fn ends() {
        assert_eq!(bootstrap_mean(&[], 0.95, 0), None);
        assert_eq!(bootstrap_mean(&[1.0, f64::NAN], 0.95, 0), None);
        let one = bootstrap_mean(&[2.5], 0.95, 0).unwrap();
        assert_eq!((one.mean, one.interval.low, one.interval.high), (2.5, 2.5, 2.5));
        assert_eq!(bootstrap_mean(&[1.0, 2.0, 4.0], 0.9, 7), bootstrap_mean(&[1.0, 2.0, 4.0], 0.9, 7));
    }
}
