//! The report of coordinate statistics: serde structs, and their computation from the counts.

use std::ops::Range;

use serde::Serialize;

use super::coordinates::{Axis, CoordinateStats, Feature, Group};
use super::histogram::{HistogramView, Quantiles};
use super::interval::{ClusterSums, Interval, LEVEL};
use super::moments::Moments;
use drift_core::text::size::SIZE_CLASSES;

/// The format of [`StatsReport`].
pub const SCHEMA: &str = "drift.stats/1";

/// Statistics of the conformers of a corpus, in total and by size of the molecule. Shares are fractions of 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatsReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The confidence level of every interval.
    pub level: f64,
    /// The statistics of all conformers.
    #[serde(flatten)]
    pub total: GroupReport,
    /// The non-empty size classes, from small to large.
    pub by_size: Vec<SizeReport>,
}

/// Statistics of one size class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeReport {
    /// The class's range of heavy atom counts, such as `15-24`.
    pub class: &'static str,
    /// Its statistics, without histograms.
    #[serde(flatten)]
    pub group: GroupReport,
}

/// Statistics of a group of conformers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupReport {
    /// The number of conformers.
    pub conformers: u64,
    /// The number of distinct molecules: of different SMILES, so that two spellings of one count as two.
    pub molecules: u64,
    /// The number of blocks, one per heavy atom.
    pub blocks: u64,
    /// The distribution of heavy atoms per conformer.
    pub heavy_atoms: HeavyAtoms,
    /// The coordinates that the stripped encoding writes with fewer characters than the fixed one; of 0 if texts have no decimals.
    pub shortened: Share,
    /// The mean number of characters per block that the stripped encoding saves; null without blocks or decimals.
    pub stripped_characters_per_block: Option<f64>,
    /// The axes x, y and z.
    pub axes: [AxisReport; 3],
}

/// A share of coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// The number of coordinates with the property.
    pub count: u64,
    /// The number of all coordinates.
    pub of: u64,
    /// `count / of`; null if `of` is 0.
    pub share: Option<f64>,
    /// The confidence interval of the share in the population from which the molecules are a sample, with molecules as clusters
    /// ([`ClusterSums::share_interval`]); null with a single molecule.
    pub interval: Option<Interval>,
}

/// The distribution of heavy atoms per conformer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeavyAtoms {
    /// The summary of the distribution; null without conformers.
    pub summary: Option<Summary>,
    /// The exact number of conformers by number of heavy atoms, ascending.
    pub histogram: Vec<AtomCount>,
}

/// The number of conformers with a given number of heavy atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AtomCount {
    /// The number of heavy atoms.
    pub atoms: u32,
    /// The number of conformers.
    pub conformers: u64,
}

/// The location and spread of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// The smallest value, exact.
    pub min: f64,
    /// The largest value, exact.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; null for a single value.
    pub sd: Option<f64>,
    /// Quantiles.
    pub quantiles: Quantiles,
}

/// Statistics of one axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AxisReport {
    /// `x`, `y` or `z`.
    pub axis: &'static str,
    /// The coordinates below zero.
    pub negative: Share,
    /// The number of coordinates written as zero: smaller than one unit of the last decimal in magnitude.
    pub zero: u64,
    /// The number of coordinates above zero.
    pub positive: u64,
    /// The number of coordinates with one, two, and three or more digits before the point.
    pub integer_digits: [u64; 3],
    /// The number of coordinates by the first digit written, 0 to 9.
    pub first_digit: [u64; 10],
    /// The number of coordinates by number of trailing zeros, from none to all decimals; empty if texts have no decimals.
    pub trailing_zeros: Vec<u64>,
    /// The coordinates that the stripped encoding shortens; of 0 if texts have no decimals.
    pub shortened: Share,
    /// The coordinates of 10 Å or more in magnitude.
    pub ten_or_more: Share,
    /// The coordinates of 15 Å or more in magnitude.
    pub fifteen_or_more: Share,
    /// The summary in Å; null without coordinates.
    pub summary: Option<Summary>,
    /// The histogram in bins of 0.1 Å; absent from size classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<HistogramView>,
}

impl CoordinateStats {
    /// Returns the statistics of what was counted, with means, quantiles and 95 % intervals.
    pub fn report(&self) -> StatsReport {
        let classes = SIZE_CLASSES.iter().zip(&self.classes);
        let has_decimals = self.has_decimals();
        let of_class = |group| GroupReport::of(group, false, has_decimals);
        StatsReport {
            schema: SCHEMA,
            level: LEVEL,
            total: GroupReport::of(&self.total(), true, has_decimals),
            by_size: classes
                .filter(|(_, group)| group.conformers > 0)
                .map(|(class, group)| SizeReport { class: class.label, group: of_class(group) })
                .collect(),
        }
    }
}

impl GroupReport {
    fn of(group: &Group, histograms: bool, has_decimals: bool) -> Self {
        let saved: u64 = group.axes.iter().map(Axis::stripped_characters).sum();
        let is_known = group.blocks > 0 && has_decimals;
        GroupReport {
            conformers: group.conformers,
            molecules: group.molecules(),
            blocks: group.blocks,
            heavy_atoms: HeavyAtoms::of(group),
            shortened: Share::shortened(group, 0..3, has_decimals),
            stripped_characters_per_block: is_known.then(|| saved as f64 / group.blocks as f64),
            axes: [0, 1, 2].map(|index| AxisReport::of(group, index, histograms, has_decimals)),
        }
    }
}

impl Share {
    /// Returns the share of shortened coordinates; of none if texts have no decimals.
    fn shortened(group: &Group, axes: Range<usize>, has_decimals: bool) -> Self {
        let sums = has_decimals.then(|| group.clusters(Feature::Shortened, axes));
        Share::of(&sums.unwrap_or_default())
    }

    fn of(clusters: &ClusterSums) -> Self {
        let (count, of) = clusters.totals();
        Share {
            // These are counts of coordinates, so they are neither negative nor larger than 64 bits.
            count: count as u64,
            of: of as u64,
            share: clusters.ratio(),
            interval: if clusters.clusters() > 1 { clusters.share_interval(LEVEL) } else { None },
        }
    }
}

impl HeavyAtoms {
    fn of(group: &Group) -> Self {
        let summary = Summary::of(group.sizes.extremes(), &group.size_moments, group.sizes.quantiles(), 1.0);
        let histogram = group.sizes.iter().map(|(atoms, conformers)| AtomCount { atoms, conformers });
        HeavyAtoms { summary, histogram: histogram.collect() }
    }
}

impl AxisReport {
    fn of(group: &Group, index: usize, histograms: bool, has_decimals: bool) -> Self {
        let axis = &group.axes[index];
        let share = |feature| Share::of(&group.clusters(feature, index..index + 1));
        AxisReport {
            axis: ["x", "y", "z"][index],
            negative: share(Feature::Negative),
            zero: axis.zero,
            positive: axis.positive,
            integer_digits: axis.integer_digits,
            first_digit: axis.first_digit,
            trailing_zeros: if has_decimals { axis.trailing_zeros.clone() } else { Vec::new() },
            shortened: Share::shortened(group, index..index + 1, has_decimals),
            ten_or_more: share(Feature::TenOrMore),
            fifteen_or_more: share(Feature::FifteenOrMore),
            summary: Summary::of(
                axis.histogram.extremes(),
                &axis.moments,
                axis.histogram.quantiles(),
                axis.precision.units_per_angstrom().into(),
            ),
            histogram: histograms.then(|| axis.histogram.view()),
        }
    }
}

impl Summary {
    /// Returns the summary of values whose `extremes` and `moments` are in a smaller unit, `scale` of which make one of the report;
    /// `quantiles` are in the unit of the report.
    fn of<T: Into<f64>>(
        extremes: Option<(T, T)>,
        moments: &Moments,
        quantiles: Option<Quantiles>,
        scale: f64,
    ) -> Option<Self> {
        let (min, max) = extremes?;
        Some(Summary {
            min: min.into() / scale,
            max: max.into() / scale,
            mean: moments.mean()? / scale,
            sd: moments.sd().map(|sd| sd / scale),
            quantiles: quantiles?,
        })
    }
}
