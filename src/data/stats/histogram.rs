//! Counts by value, and quantiles computed from them.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::bootstrap::quantile;
use super::share;
use drift_core::encoding::{Fixed, Precision};

/// The number of bins per Å.
const BINS_PER_ANGSTROM: Fixed = 10;

/// The number of bins on either side of zero that every histogram has: up to 30 Å.
const NEAR: Fixed = 30 * BINS_PER_ANGSTROM;

/// The most bins of a report: 200 Å.
const VIEWED: Fixed = 200 * BINS_PER_ANGSTROM;

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

/// Counts of coordinates in bins of 0.1 Å.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoordinateHistogram {
    /// The decimals of the counted values.
    precision: Precision,
    /// The bins within ±30 Å, where nearly all coordinates of most corpora lie. Bin `i` counts `i·width <= x < (i + 1)·width`, from
    /// `-NEAR` on.
    near: Vec<u64>,
    /// The bins farther away, by their numbers.
    far: BTreeMap<Fixed, u64>,
    extremes: Option<(Fixed, Fixed)>,
}

impl CoordinateHistogram {
    /// Returns an empty histogram for coordinates with these decimals.
    pub(crate) fn new(precision: Precision) -> Self {
        CoordinateHistogram {
            precision,
            near: vec![0; 2 * NEAR as usize],
            far: BTreeMap::new(),
            extremes: None,
        }
    }

    /// Returns the width of a bin, 0.1 Å in units of the last decimal.
    fn width(&self) -> Fixed {
        self.precision.units_per_angstrom() / BINS_PER_ANGSTROM
    }

    fn in_angstrom(&self, units: f64) -> f64 {
        units / f64::from(self.precision.units_per_angstrom())
    }

    /// Counts `value` once.
    pub(crate) fn add(&mut self, value: Fixed) {
        // Rounds toward minus infinity, so that bins of negative values have the same width.
        let bin = value.div_euclid(self.width());
        match usize::try_from(bin + NEAR).ok().and_then(|at| self.near.get_mut(at)) {
            Some(count) => *count += 1,
            None => *self.far.entry(bin).or_default() += 1,
        }
        self.widen(value, value);
    }

    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.near.iter_mut().zip(&other.near).for_each(|(mine, theirs)| *mine += theirs);
        other.far.iter().for_each(|(bin, theirs)| *self.far.entry(*bin).or_default() += theirs);
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

    /// Returns the bins with values and their counts, in ascending order.
    fn bins(&self) -> impl Iterator<Item = (Fixed, u64)> {
        let far = |bins: Range<Fixed>| self.far.range(bins).map(|(bin, count)| (*bin, *count));
        let near =
            (-NEAR..).zip(&self.near).filter(|(_, count)| **count > 0).map(|(bin, count)| (bin, *count));
        far(Fixed::MIN..-NEAR).chain(near).chain(far(NEAR..Fixed::MAX))
    }

    /// Returns the quantiles in Å, interpolated linearly within a bin, so accurate to 0.1 Å. `None` without values.
    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        let total: u64 = self.bins().map(|(_, count)| count).sum();
        Quantiles::by(|per_mille| self.quantile(total as f64 * per_mille as f64 / 1000.0))
    }

    /// Returns the value that `wanted` of the values do not exceed.
    fn quantile(&self, wanted: f64) -> Option<f64> {
        let (min, max) = self.extremes?;
        let mut before = 0;
        for (bin, count) in self.bins() {
            if (before + count) as f64 >= wanted {
                let inside = (wanted - before as f64) / count as f64;
                let value = (f64::from(bin) + inside) * f64::from(self.width());
                // Values within a bin are assumed to be spread evenly, which can exceed the extremes. These are known exactly.
                return Some(self.in_angstrom(value.clamp(f64::from(min), f64::from(max))));
            }
            before += count;
        }
        None
    }

    /// Returns the bins from the first to the last non-empty one; the [`VIEWED`] around the median if they are more.
    pub(crate) fn view(&self) -> HistogramView {
        let all: Vec<(Fixed, u64)> = self.bins().collect();
        let total: u64 = all.iter().map(|(_, count)| count).sum();
        let mut first = all.first().map_or(0, |(bin, _)| *bin);
        let mut end = all.last().map_or(first, |(bin, _)| bin + 1);
        if end - first > VIEWED {
            let mut seen = 0;
            let median = all.iter().find(|(_, count)| {
                seen += count;
                2 * seen >= total
            });
            first = median.map_or(first, |(bin, _)| bin - VIEWED / 2).clamp(first, end - VIEWED);
            end = first + VIEWED;
        }
        let (mut counts, mut below, mut above) = (vec![0; (end - first) as usize], 0, 0);
        for (bin, count) in all {
            match bin {
                bin if bin < first => below += count,
                bin if bin >= end => above += count,
                bin => counts[(bin - first) as usize] += count,
            }
        }
        let from_angstrom = self.in_angstrom(f64::from(first) * f64::from(self.width()));
        let width_angstrom = self.in_angstrom(f64::from(self.width()));
        HistogramView { from_angstrom, width_angstrom, counts, below, above }
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
    /// The number of values below the first bin: if values spread over more than 200 Å, only the bins around the median are listed.
    pub below: u64,
    /// The number of values above the last bin.
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
    fn what_lies_far_away_is_kept() {
        let mut histogram = CoordinateHistogram::new(Precision::FOUR);
        let farthest = Precision::FOUR.max_fixed();
        for value in [-farthest, -300_001, -300_000, 299_999, 300_000, farthest] {
            histogram.add(value);
        }
        assert_eq!(histogram.extremes(), Some((-farthest, farthest)));
        let view = histogram.view();
        assert_eq!((view.below, view.above, view.counts.len()), (1, 1, 2_000));
        assert_eq!(view.counts.iter().sum::<u64>(), 4);
        assert!(CoordinateHistogram::new(Precision::FOUR).view().counts.is_empty());
    }

    /// A corpus in the frame of a crystal.
    #[test]
    fn quantiles_far_from_zero_are_as_fine() {
        let mut histogram = CoordinateHistogram::new(Precision::FOUR);
        (400_000..1_400_000).step_by(10).for_each(|value| histogram.add(value));
        let q = histogram.quantiles().unwrap();
        for (got, want) in [(q.p05, 45.0), (q.p25, 65.0), (q.p50, 90.0), (q.p75, 115.0), (q.p95, 135.0)] {
            assert!((got - want).abs() < 1e-9, "{got} {want}");
        }
        let view = histogram.view();
        assert_eq!((view.from_angstrom, view.counts.len(), view.below, view.above), (40.0, 1_000, 0, 0));
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
