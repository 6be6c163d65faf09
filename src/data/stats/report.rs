//! What coordinate statistics say: serde structs, and how they follow from the counts.

use serde::Serialize;

use super::coordinates::{Axis, CoordinateStats, Feature, Group};
use super::histogram::{HistogramView, Quantiles};
use super::interval::{ClusterSums, Interval, LEVEL};
use drift_core::text::size::SIZE_CLASSES;

/// The format of [`StatsReport`].
pub const SCHEMA: &str = "drift.stats/1";

/// Statistics of a corpus, of all conformers and by size of the molecule. Shares are fractions of 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatsReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The confidence level of every interval.
    pub level: f64,
    /// All conformers.
    #[serde(flatten)]
    pub total: GroupReport,
    /// The size classes that hold anything, from small to large.
    pub by_size: Vec<SizeReport>,
}

/// Statistics of one size class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeReport {
    /// The class's range of heavy atoms: `15-24`.
    pub class: &'static str,
    /// Its statistics, without histograms.
    #[serde(flatten)]
    pub group: GroupReport,
}

/// Statistics of a group of conformers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupReport {
    /// Conformers.
    pub conformers: u64,
    /// Distinct molecules.
    pub molecules: u64,
    /// Blocks, one per heavy atom.
    pub blocks: u64,
    /// Heavy atoms per conformer.
    pub heavy_atoms: HeavyAtoms,
    /// Coordinates that the stripped dialect writes shorter than the fixed one.
    pub shortened: Share,
    /// Characters that the stripped dialect saves per block; null without blocks.
    pub stripped_characters_per_block: Option<f64>,
    /// The axes x, y and z.
    pub axes: [AxisReport; 3],
}

/// A share of coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// How many.
    pub count: u64,
    /// Of how many.
    pub of: u64,
    /// `count / of`; null if `of` is 0.
    pub share: Option<f64>,
    /// The interval for the share in the population that the molecules are a sample of, molecules being the clusters
    /// ([`ClusterSums::share_interval`]); null with a single molecule.
    pub interval: Option<Interval>,
}

/// The distribution of heavy atoms per conformer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeavyAtoms {
    /// Null without conformers.
    pub summary: Option<Summary>,
    /// Exact; conformers by heavy atoms, ascending.
    pub histogram: Vec<AtomCount>,
}

/// How many conformers have so many heavy atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AtomCount {
    /// Heavy atoms.
    pub atoms: u32,
    /// Conformers.
    pub conformers: u64,
}

/// Where a distribution lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// The least value, exact.
    pub min: f64,
    /// The greatest value, exact.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; null for one value.
    pub sd: Option<f64>,
    /// Quantiles.
    pub quantiles: Quantiles,
}

/// Statistics of one axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AxisReport {
    /// `x`, `y` or `z`.
    pub axis: &'static str,
    /// Coordinates below zero.
    pub negative: Share,
    /// Coordinates of zero, as written: below one unit of the last decimal in magnitude.
    pub zero: u64,
    /// Coordinates above zero.
    pub positive: u64,
    /// Coordinates with one, two, three or more digits before the point.
    pub integer_digits: [u64; 3],
    /// Coordinates by the first digit written, 0 to 9.
    pub first_digit: [u64; 10],
    /// Coordinates by how many of the decimals are trailing zeros, from none to all.
    pub trailing_zeros: Vec<u64>,
    /// Coordinates that the stripped dialect shortens.
    pub shortened: Share,
    /// Coordinates of 10 Å or more in magnitude.
    pub ten_or_more: Share,
    /// Coordinates of 15 Å or more in magnitude.
    pub fifteen_or_more: Share,
    /// In Å; null without coordinates.
    pub summary: Option<Summary>,
    /// By 0.1 Å; absent from size classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<HistogramView>,
}

impl CoordinateStats {
    /// What was counted, with means, quantiles and 95 % intervals.
    pub fn report(&self) -> StatsReport {
        let classes = SIZE_CLASSES.iter().zip(&self.classes);
        StatsReport {
            schema: SCHEMA,
            level: LEVEL,
            total: GroupReport::of(&self.total(), true),
            by_size: classes
                .filter(|(_, group)| group.conformers > 0)
                .map(|(class, group)| SizeReport { class: class.label, group: GroupReport::of(group, false) })
                .collect(),
        }
    }
}

impl GroupReport {
    fn of(group: &Group, histograms: bool) -> Self {
        let saved: u64 = group.axes.iter().map(Axis::stripped_characters).sum();
        GroupReport {
            conformers: group.conformers,
            molecules: group.molecules(),
            blocks: group.blocks,
            heavy_atoms: HeavyAtoms::of(group),
            shortened: Share::of(&group.clusters(Feature::Shortened, 0..3)),
            stripped_characters_per_block: (group.blocks > 0).then(|| saved as f64 / group.blocks as f64),
            axes: [0, 1, 2].map(|index| AxisReport::of(group, index, histograms)),
        }
    }
}

impl Share {
    fn of(clusters: &ClusterSums) -> Self {
        let (count, of) = clusters.totals();
        Share {
            // Counts of coordinates: neither negative nor beyond 64 bits.
            count: count as u64,
            of: of as u64,
            share: clusters.ratio(),
            interval: if clusters.clusters() > 1 { clusters.share_interval(LEVEL) } else { None },
        }
    }
}

impl HeavyAtoms {
    fn of(group: &Group) -> Self {
        let summary = || {
            let (min, max) = group.sizes.extremes()?;
            Some(Summary {
                min: f64::from(min),
                max: f64::from(max),
                mean: group.size_moments.mean()?,
                sd: group.size_moments.sd(),
                quantiles: group.sizes.quantiles()?,
            })
        };
        let histogram = group.sizes.iter().map(|(atoms, conformers)| AtomCount { atoms, conformers });
        HeavyAtoms { summary: summary(), histogram: histogram.collect() }
    }
}

impl AxisReport {
    fn of(group: &Group, index: usize, histograms: bool) -> Self {
        let axis = &group.axes[index];
        let share = |feature| Share::of(&group.clusters(feature, index..index + 1));
        AxisReport {
            axis: ["x", "y", "z"][index],
            negative: share(Feature::Negative),
            zero: axis.zero,
            positive: axis.positive,
            integer_digits: axis.integer_digits,
            first_digit: axis.first_digit,
            trailing_zeros: axis.trailing_zeros.clone(),
            shortened: share(Feature::Shortened),
            ten_or_more: share(Feature::TenOrMore),
            fifteen_or_more: share(Feature::FifteenOrMore),
            summary: axis_summary(axis),
            histogram: histograms.then(|| axis.histogram.view()),
        }
    }
}

/// In Å.
fn axis_summary(axis: &Axis) -> Option<Summary> {
    let angstrom = |units: f64| units / f64::from(axis.precision.units_per_angstrom());
    let (min, max) = axis.histogram.extremes()?;
    Some(Summary {
        min: angstrom(f64::from(min)),
        max: angstrom(f64::from(max)),
        mean: angstrom(axis.moments.mean()?),
        sd: axis.moments.sd().map(angstrom),
        quantiles: axis.histogram.quantiles()?,
    })
}
