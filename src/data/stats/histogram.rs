//! Counts by value, and quantiles computed from them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bootstrap::quantile;
use super::share;
use drift_core::encoding::{Fixed, Precision};

/// Coordinates between minus and plus this value, in Å, have bins.
const RANGE_ANGSTROM: Fixed = 30;

/// The number of bins per Å.
const BINS_PER_ANGSTROM: Fixed = 10;

const BINS: usize = (2 * RANGE_ANGSTROM * BINS_PER_ANGSTROM) as usize;

/// The quantiles that reports show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// 5 % are at most this.
    pub p05: f64,
    /// The lower quartile.
    pub p25: f64,
    /// The median.
    pub p50: f64,
    /// The upper quartile.
    pub p75: f64,
    /// 95 % are at most this.
    pub p95: f64,
}

impl Quantiles {
    /// Returns the quantiles of values, interpolated between neighbours (R's type 7); `None` without values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Quantiles::by(|per_mille| (!sorted.is_empty()).then(|| quantile(&sorted, per_mille as f64 / 1000.0)))
    }

    /// Builds the quantiles from `at`, which returns the quantile for a per mille value.
    fn by(at: impl Fn(u64) -> Option<f64>) -> Option<Self> {
        Some(Quantiles { p05: at(50)?, p25: at(250)?, p50: at(500)?, p75: at(750)?, p95: at(950)? })
    }
}

/// Counts of coordinates in bins of 0.1 Å over ±30 Å. Coordinates outside are counted as below or above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoordinateHistogram {
    /// The decimals of the counted values.
    precision: Precision,
    /// Bin `i` counts `-range + i·width <= x < -range + (i + 1)·width`.
    bins: Vec<u64>,
    below: u64,
    above: u64,
    extremes: Option<(Fixed, Fixed)>,
}

impl CoordinateHistogram {
    /// Returns an empty histogram for coordinates with these decimals.
    pub(crate) fn new(precision: Precision) -> Self {
        CoordinateHistogram { precision, bins: vec![0; BINS], below: 0, above: 0, extremes: None }
    }

    /// Returns the width of a bin, 0.1 Å in units of the last decimal.
    fn width(&self) -> Fixed {
        self.precision.units_per_angstrom() / BINS_PER_ANGSTROM
    }

    /// Returns the end of the bins, 30 Å in units of the last decimal.
    fn range(&self) -> Fixed {
        RANGE_ANGSTROM * self.precision.units_per_angstrom()
    }

    fn in_angstrom(&self, units: f64) -> f64 {
        units / f64::from(self.precision.units_per_angstrom())
    }

    /// Counts `value` once.
    pub(crate) fn add(&mut self, value: Fixed) {
        // Rounds toward minus infinity, so that bins of negative values have the same width.
        let bin = (value + self.range()).div_euclid(self.width());
        match usize::try_from(bin) {
            Err(_) => self.below += 1,
            Ok(bin) if bin < BINS => self.bins[bin] += 1,
            Ok(_) => self.above += 1,
        }
        self.widen(value, value);
    }

    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.bins.iter_mut().zip(&other.bins).for_each(|(mine, theirs)| *mine += theirs);
        self.below += other.below;
        self.above += other.above;
        if let Some((low, high)) = other.extremes {
            self.widen(low, high);
        }
    }

    fn widen(&mut self, low: Fixed, high: Fixed) {
        let (min, max) = self.extremes.unwrap_or((low, high));
        self.extremes = Some((min.min(low), max.max(high)));
    }

    /// Returns the smallest and the largest value, exact; `None` without values.
    pub(crate) fn extremes(&self) -> Option<(Fixed, Fixed)> {
        self.extremes
    }

    /// Returns the quantiles in Å, interpolated linearly within a bin, so accurate to 0.1 Å (less beyond ±30 Å). `None` without values.
    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        Quantiles::by(|per_mille| self.quantile(per_mille))
    }

    fn quantile(&self, per_mille: u64) -> Option<f64> {
        let (min, max) = self.extremes?;
        let (range, width) = (self.range(), self.width());
        let edge = |bin: usize| -range + bin as Fixed * width;
        let inner = self.bins.iter().enumerate().map(|(i, &count)| (edge(i), edge(i + 1), count));
        // Values outside the bins are assumed to be spread evenly between the outermost edge and the extreme.
        let bins = std::iter::once((min.min(-range), -range, self.below))
            .chain(inner)
            .chain(std::iter::once((range, max.max(range), self.above)));
        let total: u64 = self.below + self.bins.iter().sum::<u64>() + self.above;
        let wanted = total as f64 * per_mille as f64 / 1000.0;
        let mut before = 0;
        for (from, to, count) in bins {
            if count > 0 && (before + count) as f64 >= wanted {
                let inside = (wanted - before as f64) / count as f64;
                let value = f64::from(from) + inside * f64::from(to - from);
                // Values within a bin are assumed to be spread evenly, which can exceed the extremes. These are known exactly.
                let clipped = value.clamp(f64::from(min), f64::from(max));
                return Some(self.in_angstrom(clipped));
            }
            before += count;
        }
        None
    }

    /// Returns the bins from the first to the last non-empty one.
    pub(crate) fn view(&self) -> HistogramView {
        let first = self.bins.iter().position(|&n| n > 0).unwrap_or(0);
        let end = self.bins.iter().rposition(|&n| n > 0).map_or(first, |last| last + 1);
        HistogramView {
            from_angstrom: self.in_angstrom(f64::from(-self.range() + first as Fixed * self.width())),
            width_angstrom: self.in_angstrom(f64::from(self.width())),
            counts: self.bins[first..end].to_vec(),
            below: self.below,
            above: self.above,
        }
    }
}

/// A histogram for reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistogramView {
    /// The left edge of the first bin, in Å.
    pub from_angstrom: f64,
    /// The width of a bin, in Å.
    pub width_angstrom: f64,
    /// One count per bin.
    pub counts: Vec<u64>,
    /// The number of values below -30 Å, outside the bins.
    pub below: u64,
    /// The number of values of 30 Å or more, outside the bins.
    pub above: u64,
}

impl HistogramView {
    /// Returns the number of values, including those outside the bins.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.below + self.above
    }

    /// Returns the share of each bin among all values.
    pub fn shares(&self) -> impl Iterator<Item = f64> + '_ {
        let all = self.total();
        self.counts.iter().map(move |&count| share(count, all))
    }
}

/// Exact counts of small non-negative integers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally(BTreeMap<u32, u64>);

impl Tally {
    /// Counts `value` once.
    pub fn add(&mut self, value: u32) {
        *self.0.entry(value).or_default() += 1;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (&value, &count) in &other.0 {
            *self.0.entry(value).or_default() += count;
        }
    }

    /// Returns the values and their counts, in ascending order of values.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter().map(|(&value, &count)| (value, count))
    }

    /// Returns the smallest and the largest value; `None` without values.
    pub fn extremes(&self) -> Option<(u32, u32)> {
        Some((*self.0.first_key_value()?.0, *self.0.last_key_value()?.0))
    }

    /// Exact quantiles: the smallest value such that at least the given share of values does not exceed it (the inverse of the
    /// empirical distribution; type 1 of Hyndman and Fan, The American Statistician 50 (1996) 361). `None` without values.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let total: u128 = self.0.values().map(|&count| u128::from(count)).sum();
        Quantiles::by(|per_mille| {
            let mut seen = 0u128;
            let reached = self.iter().find(|&(_, count)| {
                seen += u128::from(count);
                // Compared in integers: a floating-point share may fall short of 0.95 by rounding, and the quantile would be one
                // too high.
                seen * 1000 >= u128::from(per_mille) * total
            });
            reached.map(|(value, _)| f64::from(value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_their_left_edge() {
        let mut histogram = CoordinateHistogram::new(Precision::FOUR);
        for value in [-1, -1000, -1001, 0, 999, 1000] {
            histogram.add(value);
        }
        let view = histogram.view();
        assert_eq!((view.from_angstrom, view.width_angstrom), (-0.2, 0.1));
        assert_eq!(view.counts, [1, 2, 2, 1]);
    }

    #[test]
    fn what_lies_outside_is_kept() {
        let mut histogram = CoordinateHistogram::new(Precision::FOUR);
        let range = histogram.range();
        for value in [-999_999_999, -range, range - 1, range, 999_999_999] {
            histogram.add(value);
        }
        assert_eq!(histogram.extremes(), Some((-999_999_999, 999_999_999)));
        let view = histogram.view();
        assert_eq!((view.below, view.above, view.counts.iter().sum::<u64>()), (1, 2, 2));
    }

    #[test]
    fn quantiles_of_a_uniform_range() {
        let mut histogram = CoordinateHistogram::new(Precision::FOUR);
        (-20_000..20_000).for_each(|value| histogram.add(value));
        let q = histogram.quantiles().unwrap();
        for (got, want) in [(q.p05, -1.8), (q.p25, -1.0), (q.p50, 0.0), (q.p75, 1.0), (q.p95, 1.8)] {
            assert!((got - want).abs() < 1e-9, "{got} {want}");
        }
        assert_eq!(CoordinateHistogram::new(Precision::FOUR).quantiles(), None);
    }

    #[test]
    fn exact_quantiles_of_a_tally() {
        let mut tally = Tally::default();
        (1..=20).for_each(|value| tally.add(value));
        let q = tally.quantiles().unwrap();
        assert_eq!([q.p05, q.p25, q.p50, q.p75, q.p95], [1.0, 5.0, 10.0, 15.0, 19.0]);
        assert_eq!(Tally::default().quantiles(), None);
    }
}
