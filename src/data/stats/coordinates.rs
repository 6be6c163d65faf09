//! The accumulator of coordinate statistics.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use super::histogram::{CoordinateHistogram, Tally};
use super::interval::ClusterSums;
use super::moments::Moments;
use crate::corpus::Conformer;
use drift_core::Encoding;
use drift_core::encoding::{Fixed, Precision};
use drift_core::text::size::{SIZE_CLASSES, size_class};

/// Exact statistics of the coordinates of conformers.
///
/// Count on each thread with [`add`](Self::add), then [`merge`](Self::merge) in any order. Only integers are stored, so the result
/// is the same. Memory grows with the number of distinct molecules (about 120 bytes each), not with the number of conformers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinateStats {
    encoding: Encoding,
    /// The decimals that are counted: the encoding's own or, for encodings without decimals, four decimals of the decoded values.
    precision: Precision,
    /// The number of coordinates in a tail.
    out_of_range: u64,
    pub(super) classes: [Group; SIZE_CLASSES.len()],
}

impl Default for CoordinateStats {
    fn default() -> Self {
        CoordinateStats::new(Encoding::FIXED)
    }
}

impl CoordinateStats {
    /// Statistics for coordinates of an encoding.
    pub fn new(encoding: Encoding) -> Self {
        let precision = if encoding.decimals() > 0 { encoding.precision() } else { Precision::FOUR };
        let classes = std::array::from_fn(|_| Group::new(precision));
        CoordinateStats { encoding, precision, out_of_range: 0, classes }
    }

    /// Returns the number of coordinates in a tail, whose text only says that they are outside the encoding's range.
    pub fn out_of_range(&self) -> u64 {
        self.out_of_range
    }

    /// Returns whether texts have decimals, whose trailing zeros may be stripped.
    pub(super) fn has_decimals(&self) -> bool {
        self.encoding.decimals() > 0
    }

    /// Counts one conformer.
    pub fn add(&mut self, conformer: &Conformer) {
        let class = size_class(conformer.coordinates.len());
        let molecule = molecule_hash(&conformer.molecule);
        if self.has_decimals() {
            self.classes[class].add(molecule, &conformer.coordinates);
            return;
        }
        let tails = |values: &[Fixed; 3]| {
            (0..3).filter(|axis| self.encoding.number().is_tail(values[*axis], *axis)).count()
        };
        self.out_of_range += conformer.coordinates.iter().map(tails).sum::<usize>() as u64;
        if !self.encoding.has_coordinates() {
            self.classes[class].add_size(molecule, conformer.coordinates.len());
            return;
        }
        let coordinates: Vec<[Fixed; 3]> =
            conformer.coordinates.iter().map(|values| in_four_decimals(values, self.encoding)).collect();
        self.classes[class].add(molecule, &coordinates);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &CoordinateStats) {
        self.out_of_range += other.out_of_range;
        self.classes.iter_mut().zip(&other.classes).for_each(|(mine, theirs)| mine.merge(theirs));
    }

    /// Returns all size classes as one group.
    pub(super) fn total(&self) -> Group {
        let mut total = Group::new(self.precision);
        self.classes.iter().for_each(|class| total.merge(class));
        total
    }
}

/// Returns the coordinates that values represent, truncated to four decimals. Large integers may lie farther than decimals reach, as in
/// `integers:1,7`; they become the farthest coordinate.
fn in_four_decimals(values: &[Fixed; 3], encoding: Encoding) -> [Fixed; 3] {
    let most = Precision::FOUR.angstrom(Precision::FOUR.max_fixed());
    let cut = |x: f64| Encoding::FIXED.number().quantize(x.clamp(-most, most), 0).unwrap_or_default();
    match Encoding::FIXED.convert(values, encoding) {
        Ok(values) => values,
        // Codes on their own represent no coordinates, and are not counted here.
        Err(_) => encoding.angstrom(values).unwrap_or_default().map(cut),
    }
}

/// Returns a 64-bit hash of a molecule's key. Reports show only the number of distinct hashes, so the algorithm may change. The
/// probability that any two of a million molecules collide is 3 in 10⁸.
fn molecule_hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key.as_bytes());
    hasher.finish()
}

/// A property that a single coordinate has or lacks, counted per molecule so that its share gets an interval.
#[derive(Debug, Clone, Copy)]
pub(super) enum Feature {
    Negative,
    Shortened,
    TenOrMore,
    FifteenOrMore,
}

const FEATURES: usize = 4;

/// The counts of one molecule, which is a cluster of [`ClusterSums`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Molecule {
    blocks: u64,
    features: [[u64; FEATURES]; 3],
}

/// The counts of a group of conformers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub conformers: u64,
    pub blocks: u64,
    /// The number of heavy atoms per conformer.
    pub sizes: Tally,
    pub size_moments: Moments,
    pub axes: [Axis; 3],
    molecules: HashMap<u64, Molecule>,
}

/// The counts of one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Axis {
    pub precision: Precision,
    pub zero: u64,
    pub positive: u64,
    /// The number of coordinates with one, two, and three or more digits before the point.
    pub integer_digits: [u64; 3],
    /// The number of coordinates by the first digit written; the digit is 0 below 1 Å.
    pub first_digit: [u64; 10],
    /// The number of coordinates by number of trailing zeros, from none to all decimals.
    pub trailing_zeros: Vec<u64>,
    /// Moments of the coordinates in units of [`Fixed`].
    pub moments: Moments,
    pub histogram: CoordinateHistogram,
}

impl Group {
    fn new(precision: Precision) -> Self {
        Group {
            conformers: 0,
            blocks: 0,
            sizes: Tally::default(),
            size_moments: Moments::default(),
            axes: std::array::from_fn(|_| Axis::new(precision)),
            molecules: HashMap::new(),
        }
    }

    /// Counts a conformer without its coordinates; returns the counts of its molecule.
    fn add_size(&mut self, molecule: u64, blocks: usize) -> &mut Molecule {
        self.conformers += 1;
        self.blocks += blocks as u64;
        self.sizes.add(u32::try_from(blocks).unwrap_or(u32::MAX));
        self.size_moments.add(blocks as i64);
        let molecule = self.molecules.entry(molecule).or_default();
        molecule.blocks += blocks as u64;
        molecule
    }

    fn add(&mut self, molecule: u64, coordinates: &[[Fixed; 3]]) {
        let mut features = self.add_size(molecule, coordinates.len()).features;
        for block in coordinates {
            for (axis, &value) in block.iter().enumerate() {
                self.axes[axis].add(value);
                let features = &mut features[axis];
                features[Feature::Negative as usize] += u64::from(value < 0);
                // The stripped encoding removes trailing zeros.
                features[Feature::Shortened as usize] += u64::from(value % 10 == 0);
                features[Feature::TenOrMore as usize] += u64::from(self.axes[axis].reaches(value, 10));
                features[Feature::FifteenOrMore as usize] += u64::from(self.axes[axis].reaches(value, 15));
            }
        }
        // The entry exists since `add_size` above.
        self.molecules.entry(molecule).or_default().features = features;
    }

    fn merge(&mut self, other: &Group) {
        self.conformers += other.conformers;
        self.blocks += other.blocks;
        self.sizes.merge(&other.sizes);
        self.size_moments.merge(&other.size_moments);
        self.axes.iter_mut().zip(&other.axes).for_each(|(mine, theirs)| mine.merge(theirs));
        for (&key, theirs) in &other.molecules {
            let mine = self.molecules.entry(key).or_default();
            mine.blocks += theirs.blocks;
            for (mine, theirs) in mine.features.iter_mut().zip(&theirs.features) {
                add_counts(mine, theirs);
            }
        }
    }

    /// Returns the number of distinct molecules.
    pub(super) fn molecules(&self) -> u64 {
        self.molecules.len() as u64
    }

    /// For each molecule as a cluster, sums the coordinates with `feature` over one axis or all three.
    pub(super) fn clusters(&self, feature: Feature, axes: std::ops::Range<usize>) -> ClusterSums {
        let mut sums = ClusterSums::default();
        for molecule in self.molecules.values() {
            let hits: u64 = molecule.features[axes.clone()].iter().map(|f| f[feature as usize]).sum();
            sums.add(hits as i64, molecule.blocks * axes.len() as u64);
        }
        sums
    }
}

impl Axis {
    fn new(precision: Precision) -> Self {
        Axis {
            precision,
            zero: 0,
            positive: 0,
            integer_digits: [0; 3],
            first_digit: [0; 10],
            trailing_zeros: vec![0; precision.decimals() + 1],
            moments: Moments::default(),
            histogram: CoordinateHistogram::new(precision),
        }
    }

    fn add(&mut self, value: Fixed) {
        let magnitude = value.unsigned_abs();
        match value.signum() {
            0 => self.zero += 1,
            1 => self.positive += 1,
            _ => {}
        }
        let mut integer = magnitude / self.precision.units_per_angstrom() as u32;
        let mut digits = 1;
        while integer >= 10 {
            integer /= 10;
            digits += 1;
        }
        self.integer_digits[digits.min(3) - 1] += 1;
        self.first_digit[integer as usize] += 1;
        self.trailing_zeros[self.precision.trailing_zeros(magnitude)] += 1;
        self.moments.add(i64::from(value));
        self.histogram.add(value);
    }

    fn reaches(&self, value: Fixed, angstrom: Fixed) -> bool {
        value.unsigned_abs() >= (angstrom * self.precision.units_per_angstrom()) as u32
    }

    fn merge(&mut self, other: &Axis) {
        self.zero += other.zero;
        self.positive += other.positive;
        add_counts(&mut self.integer_digits, &other.integer_digits);
        add_counts(&mut self.first_digit, &other.first_digit);
        add_counts(&mut self.trailing_zeros, &other.trailing_zeros);
        self.moments.merge(&other.moments);
        self.histogram.merge(&other.histogram);
    }

    /// Returns the number of characters that the stripped encoding saves: one per trailing zero, and the point if no decimal remains.
    pub(super) fn stripped_characters(&self) -> u64 {
        let all = self.precision.decimals();
        let saved = |zeros: usize| (zeros + usize::from(zeros == all)) as u64;
        self.trailing_zeros.iter().enumerate().map(|(zeros, count)| count * saved(zeros)).sum()
    }
}

fn add_counts(mine: &mut [u64], theirs: &[u64]) {
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn conformer(molecule: &str, coordinates: Vec<[Fixed; 3]>) -> Conformer {
        let skeleton = "[C]<>".repeat(coordinates.len());
        Conformer::new(molecule.into(), skeleton.into(), coordinates)
    }

    fn counted(conformers: &[Conformer]) -> CoordinateStats {
        let mut stats = CoordinateStats::default();
        conformers.iter().for_each(|c| stats.add(c));
        stats
    }

    #[test]
    fn integers_farther_than_decimals_reach_are_the_farthest_coordinate() {
        let mut stats = CoordinateStats::new("integers:1,7".parse().unwrap());
        stats.add(&conformer("C", vec![[9_999_999, -100_000, 12]]));
        let report = stats.report();
        let [x, y, z] = &report.total.axes;
        assert_eq!((x.zero, x.positive, y.zero, y.negative.count), (0, 1, 0, 1));
        assert_eq!((x.first_digit[9], y.first_digit[9], z.first_digit[1]), (1, 1, 1));
    }

    #[test]
    fn counts_by_hand() {
        let stats = counted(&[
            conformer("CO", vec![[-10_500, 0, 123_456], [20_001, -1, 1_500_000]]),
            conformer("CO", vec![[5_000, -98_700, 0], [1_234, 0, -150_000]]),
        ]);
        let report = stats.report();
        let total = &report.total;
        assert_eq!((total.conformers, total.molecules, total.blocks), (2, 1, 4));
        assert_eq!(report.by_size.iter().map(|s| s.class).collect::<Vec<_>>(), ["1-14"]);
        let [x, y, z] = &total.axes;
        assert_eq!((x.negative.count, x.zero, x.positive), (1, 0, 3));
        assert_eq!((y.negative.count, y.zero, y.positive), (2, 2, 0));
        assert_eq!(z.integer_digits, [1, 2, 1]);
        assert_eq!((z.first_digit[1], z.first_digit[0]), (3, 1));
        assert_eq!(x.trailing_zeros, [2, 0, 1, 1, 0]);
        assert_eq!((z.ten_or_more.count, z.fifteen_or_more.count), (3, 2));
        // 0.5000 and 1.0500 lose 3 and 2 characters; y: 0.0000 twice 5, 9.8700 2; z: 150.0000, 0.0000, 15.0000 5 each.
        assert_eq!(total.stripped_characters_per_block, Some((3 + 2 + 12 + 15) as f64 / 4.0));
        assert_eq!((total.shortened.count, total.shortened.of), (8, 12));
        // One molecule tells nothing about others.
        assert_eq!(total.shortened.interval, None);
        let summary = z.summary.unwrap();
        assert_eq!((summary.min, summary.max), (-15.0, 150.0));
        assert_eq!(summary.mean, 147.3456 / 4.0);
    }

    #[test]
    fn an_empty_report_claims_nothing() {
        let report = CoordinateStats::default().report();
        assert_eq!((report.total.conformers, report.by_size.len()), (0, 0));
        assert_eq!(report.total.axes[0].summary, None);
        assert_eq!(report.total.shortened.share, None);
    }

    fn any_conformer() -> impl Strategy<Value = Conformer> {
        let value = prop_oneof![-200_000..200_000, -5..5, Just(999_999_999), Just(-999_999_999)];
        let block = [value.clone(), value.clone(), value];
        (0..6u8, prop::collection::vec(block, 1..60))
            .prop_map(|(molecule, blocks)| conformer(&format!("molecule {molecule}"), blocks))
    }

    proptest! {
        #[test]
        fn any_split_in_any_order_gives_the_same(
            conformers in prop::collection::vec(any_conformer(), 0..20),
            parts in prop::collection::vec(0..4usize, 20),
            order in Just([0usize, 1, 2, 3]).prop_shuffle(),
        ) {
            let whole = counted(&conformers);
            let mut split = vec![CoordinateStats::default(); 4];
            conformers.iter().zip(&parts).for_each(|(c, &part)| split[part].add(c));
            let mut merged = CoordinateStats::default();
            order.iter().for_each(|&part| merged.merge(&split[part]));
            prop_assert_eq!(&merged, &whole);
            let (ours, theirs) = (merged.report(), whole.report());
            prop_assert_eq!(serde_json::to_string(&ours).unwrap(), serde_json::to_string(&theirs).unwrap());
        }

        #[test]
        fn counts_add_up(conformers in prop::collection::vec(any_conformer(), 1..20)) {
            let report = counted(&conformers).report();
            let blocks = conformers.iter().map(|c| c.coordinates.len() as u64).sum::<u64>();
            prop_assert_eq!(report.total.blocks, blocks);
            prop_assert_eq!(report.by_size.iter().map(|s| s.group.blocks).sum::<u64>(), blocks);
            for axis in &report.total.axes {
                prop_assert_eq!(axis.negative.count + axis.zero + axis.positive, blocks);
                prop_assert_eq!(axis.trailing_zeros.iter().sum::<u64>(), blocks);
                prop_assert_eq!(axis.trailing_zeros[1..].iter().sum::<u64>(), axis.shortened.count);
                prop_assert_eq!(axis.first_digit.iter().sum::<u64>(), blocks);
                prop_assert_eq!(axis.integer_digits[1] + axis.integer_digits[2], axis.ten_or_more.count);
                let view = axis.histogram.as_ref().unwrap();
                prop_assert_eq!(view.below + view.above + view.counts.iter().sum::<u64>(), blocks);
            }
        }
    }
}
