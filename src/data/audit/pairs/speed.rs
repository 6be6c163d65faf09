//! The speed ratio of two runs, from the same measure, with an interval over batches.

use super::differences::{SpeedMeasure, SpeedRatio};
use crate::stats::interval::{Interval, student_quantile};

/// The seconds of batches with equal numbers of texts; the last may have fewer.
#[derive(Debug, Clone, Default)]
pub struct BatchTimes {
    /// How they are measured.
    pub measure: SpeedMeasure,
    /// The seconds of each batch.
    pub seconds: Vec<f64>,
    /// The number of texts in all batches.
    pub texts: u64,
}

impl BatchTimes {
    /// Returns how many batches have as many texts as those of the same index of `other`.
    fn equal_to(&self, other: &BatchTimes) -> usize {
        // The last batch of the row with fewer texts may be a part of the other row's.
        self.seconds.len().saturating_sub(usize::from(self.texts < other.texts))
    }
}

/// Returns how many times as fast `run` was as `other`, over the batches that both have; `None` if they have no batch in common, or were
/// measured differently.
///
/// The n-th batches of both runs are paired, because both runs begin with the longest molecules, as far as they have equally many texts.
/// The interval is Student's t over batches for the logarithm of the ratio, linearised.
pub fn ratio(run: &BatchTimes, other: &BatchTimes, level: f64) -> Option<SpeedRatio> {
    let pairs: Vec<(f64, f64)> = run.seconds[..run.equal_to(other)]
        .iter()
        .copied()
        .zip(other.seconds[..other.equal_to(run)].iter().copied())
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .collect();
    if pairs.is_empty() || run.measure != other.measure {
        return None;
    }
    let n = pairs.len() as f64;
    let (own, others) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0 / n, sum.1 + pair.1 / n));
    let ratio = others / own;
    let squares: f64 = pairs.iter().map(|(a, b)| (b / others - a / own).powi(2)).sum();
    let interval = student_quantile(level, pairs.len() as u64 - 1).map(|quantile| {
        // On the logarithmic scale, so that the interval never reaches 0, and the interval of the inverse ratio is its inverse.
        let half = quantile * (squares / (n - 1.0) / n).sqrt();
        Interval { low: ratio * (-half).exp(), high: ratio * half.exp() }
    });
    Some(SpeedRatio { ratio, interval, batches: pairs.len(), measure: run.measure })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(seconds: &[f64]) -> BatchTimes {
        BatchTimes { measure: SpeedMeasure::Cpu, seconds: seconds.to_vec(), texts: 64 }
    }

    #[test]
    fn a_ratio_with_its_interval() {
        // The batches become shorter, but the ratio stays.
        let (a, b) = (times(&[4.0, 2.0, 1.0]), times(&[8.0, 4.0, 2.0]));
        let found = ratio(&a, &b, 0.95).unwrap();
        assert_eq!((found.ratio, found.batches), (2.0, 3));
        assert_eq!(found.interval, Some(Interval { low: 2.0, high: 2.0 }));
        let noisy = ratio(&times(&[1.0, 1.3, 0.8, 1.1]), &times(&[1.1, 1.0, 1.2, 0.9]), 0.95).unwrap();
        assert!(noisy.interval.unwrap().contains(1.0));
        assert!(ratio(&times(&[1.0]), &times(&[2.0, 1.0]), 0.95).unwrap().interval.is_none());
        assert!(ratio(&times(&[]), &b, 0.95).is_none());
        assert!(ratio(&BatchTimes { measure: SpeedMeasure::Wall, ..times(&[1.0]) }, &b, 0.95).is_none());
    }

    #[test]
    fn batches_of_unequal_numbers_of_texts_are_not_paired() {
        // A second for each text: batches of 32, the last of the shorter row of 8.
        let (whole, cut) = (times(&[32.0, 32.0]), BatchTimes { texts: 40, ..times(&[32.0, 8.0]) });
        for found in [ratio(&whole, &cut, 0.95).unwrap(), ratio(&cut, &whole, 0.95).unwrap()] {
            assert_eq!((found.ratio, found.batches), (1.0, 1));
        }
        let begun = BatchTimes { texts: 8, ..times(&[8.0]) };
        assert!(ratio(&whole, &begun, 0.95).is_none());
    }
}
