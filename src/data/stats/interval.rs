//! Confidence intervals, and the test of a paired difference.
//!
//! Blocks of one conformer are not independent of each other, and neither are conformers of one molecule. Therefore a share of
//! blocks is treated as a ratio of two sums over *clusters* (molecules), and its interval is computed from the spread between
//! clusters ([`ClusterSums`]). [`wilson`] is for independent trials, and [`paired`] is for differences on the same items.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The confidence level of reports.
pub const LEVEL: f64 = 0.95;

/// A confidence interval, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// `centre` plus and minus `half_width`.
    pub fn around(centre: f64, half_width: f64) -> Self {
        Interval { low: centre - half_width, high: centre + half_width }
    }

    /// This interval with its ends clamped to the range from `low` to `high`.
    pub fn clamp(self, low: f64, high: f64) -> Self {
        Interval { low: self.low.clamp(low, high), high: self.high.clamp(low, high) }
    }

    /// Returns whether the interval contains `value`.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The part of a sum of squares that rounding may leave.
const ROUNDING: f64 = 1e-12;

/// Returns the two-sided standard normal quantile: 1.96 for `level` 0.95.
pub(crate) fn normal_quantile(level: f64) -> f64 {
    Normal::standard().inverse_cdf(f64::midpoint(1.0, level))
}

/// Returns the two-sided quantile of Student's t distribution with `freedom` degrees of freedom; `None` if `freedom` is 0.
///
/// Above 1,000 degrees of freedom, the inverse of the incomplete beta function loses digits. There the result is the expansion
/// `z + (z³ + z)/4ν + (5z⁵ + 16z³ + 3z)/96ν²` of Abramowitz and Stegun, 26.7.5, which is accurate to 10⁻⁸.
pub(crate) fn student_quantile(level: f64, freedom: u64) -> Option<f64> {
    if freedom > 1000 {
        let (z, v) = (normal_quantile(level), freedom as f64);
        let first = (z.powi(3) + z) / (4.0 * v);
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v);
        return Some(z + first + second);
    }
    student(freedom).map(|t| t.inverse_cdf(f64::midpoint(1.0, level)))
}

fn student(freedom: u64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom as f64).ok()
}

/// Wilson's score interval for `successes` of `trials` independent trials; `None` without trials.
///
/// `(p + z²/2n ± z sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n)`: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209. Unlike
/// `p ± z sqrt(p(1 - p)/n)` it stays sensible at 0 and 1.
pub(crate) fn wilson(successes: u64, trials: u64, level: f64) -> Option<Interval> {
    if trials == 0 {
        return None;
    }
    let mut interval = score(successes as f64 / trials as f64, trials, level);
    // These ends are exact in theory; this removes rounding errors.
    if successes == 0 {
        interval.low = 0.0;
    }
    if successes == trials {
        interval.high = 1.0;
    }
    Some(interval)
}

/// Returns Wilson's interval for a share `p` of `trials`, which need not be a number of successes.
fn score(p: f64, trials: u64, level: f64) -> Interval {
    let (n, z) = (trials as f64, normal_quantile(level));
    let scale = 1.0 + z * z / n;
    let centre = (p + z * z / (2.0 * n)) / scale;
    let half_width = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt() / scale;
    Interval::around(centre, half_width).clamp(0.0, 1.0)
}

drift_core::counters! {
    /// Exact sums over clusters for a ratio `Σy / Σn`, such as a share of blocks where molecules are the clusters.
    ///
    /// `y` may be negative: with `y = a - b`, the ratio is the paired difference of two shares on the same clusters.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ClusterSums {
        clusters: u64,
        y: i128,
        n: u128,
        yy: u128,
        yn: i128,
        nn: u128,
    }
}

impl ClusterSums {
    /// Adds one cluster with `y` of `n` units. A cluster without units carries no information and is not counted.
    pub fn add(&mut self, y: i64, n: u64) {
        if n == 0 {
            return;
        }
        let (wide_y, wide_n) = (i128::from(y), u128::from(n));
        self.clusters += 1;
        self.y += wide_y;
        self.n += wide_n;
        // Integers, so that merged parts give identical bits in whatever order threads finish.
        self.yy += wide_y.unsigned_abs() * wide_y.unsigned_abs();
        self.yn += wide_y * i128::from(n);
        self.nn += wide_n * wide_n;
    }

    /// Returns the number of clusters.
    pub fn clusters(&self) -> u64 {
        self.clusters
    }

    /// Returns the totals `Σy` and `Σn`.
    pub fn totals(&self) -> (i128, u128) {
        (self.y, self.n)
    }

    /// `Σy / Σn`; `None` without clusters.
    pub fn ratio(&self) -> Option<f64> {
        (self.n > 0).then(|| self.y as f64 / self.n as f64)
    }

    /// Returns the standard error of the ratio `p`, robust against correlation within clusters; `None` with fewer than two clusters.
    ///
    /// `sqrt(m/(m - 1) Σ(yᵢ - p nᵢ)²) / Σnᵢ` over `m` clusters: W. G. Cochran, Sampling Techniques, 3rd ed. (1977),
    /// section 3.12, without the finite population correction. The sum of squares is
    /// `Σy² - 2p Σyn + p² Σn²`, from exact sums.
    pub(crate) fn standard_error(&self) -> Option<f64> {
        if self.clusters < 2 {
            return None;
        }
        let p = self.ratio()?;
        let m = self.clusters as f64;
        // If all clusters have the same ratio, rounding may leave a little on either side of zero.
        let most = p * p * self.nn as f64;
        let squares = self.yy as f64 - 2.0 * p * self.yn as f64 + most;
        let squares = if squares > ROUNDING * most { squares } else { 0.0 };
        Some((squares * m / (m - 1.0)).sqrt() / self.n as f64)
    }

    /// `ratio ± t · standard error` with the quantile `t` of Student's distribution for `clusters - 1` degrees of freedom; `None`
    /// with fewer than two clusters.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let quantile = student_quantile(level, self.clusters.checked_sub(1)?)?;
        Some(Interval::around(self.ratio()?, quantile * self.standard_error()?))
    }

    /// Returns the interval of a share (`0 <= y <= n` in each cluster), within 0 to 1.
    ///
    /// A share of exactly 0 or 1, or one that all clusters have, has no spread between clusters. Then each cluster counts as one trial of
    /// [`wilson`], as if the units of a cluster always agreed. This gives an interval that is rather too wide than too narrow.
    pub fn share_interval(&self, level: f64) -> Option<Interval> {
        if self.y == 0 {
            return wilson(0, self.clusters, level);
        }
        if self.y.unsigned_abs() == self.n {
            return wilson(self.clusters, self.clusters, level);
        }
        if self.standard_error()? == 0.0 {
            return Some(score(self.ratio()?, self.clusters, level));
        }
        Some(self.interval(level)?.clamp(0.0, 1.0))
    }
}

/// A mean difference of paired items.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedDifference {
    /// The number of pairs.
    pub pairs: u64,
    /// The mean difference.
    pub mean: f64,
    /// Its confidence interval.
    pub interval: Interval,
    /// The two-sided p value of "the mean difference is zero".
    pub p_value: f64,
}

/// Student's paired t test and confidence interval for `differences`, one per independent item (a molecule, not a block).
///
/// `mean ± t s/sqrt(m)` with `m - 1` degrees of freedom, where `s` is the sample standard deviation. `None` with fewer than two
/// pairs or a difference that is not finite. If all differences are equal, the p value is 0, or 1 if they are all zero.
pub fn paired(differences: &[f64], level: f64) -> Option<PairedDifference> {
    let pairs = differences.len() as u64;
    let m = pairs as f64;
    let mean = differences.iter().sum::<f64>() / m;
    if pairs < 2 || !mean.is_finite() {
        return None;
    }
    let variance = differences.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / (m - 1.0);
    let error = (variance / m).sqrt();
    let interval = Interval::around(mean, student_quantile(level, pairs - 1)? * error);
    Some(PairedDifference { pairs, mean, interval, p_value: p_value(mean, error, pairs - 1)? })
}

/// Returns the two-sided p value of `estimate / error` under Student's t distribution. Without an error, it is 1 for an estimate of 0 and
/// 0 otherwise. `None` if `freedom` is 0.
pub fn p_value(estimate: f64, error: f64, freedom: u64) -> Option<f64> {
    if error == 0.0 {
        return Some(if estimate == 0.0 { 1.0 } else { 0.0 });
    }
    student(freedom).map(|t| (2.0 * t.sf((estimate / error).abs())).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 2e-6, "{got} is not {want}");
    }

    #[test]
    fn quantiles_of_the_tables() {
        near(normal_quantile(0.95), 1.959_964);
        near(student_quantile(0.95, 10).unwrap(), 2.228_139);
        near(student_quantile(0.99, 3).unwrap(), 5.840_909);
        near(student_quantile(0.95, 1_000_000).unwrap(), 1.959_966);
        // No step where the expansion takes over: the difference is that of one degree of freedom.
        let step = student_quantile(0.95, 1000).unwrap() - student_quantile(0.95, 1001).unwrap();
        assert!((step - 2.378e-6).abs() < 1e-8, "{step}");
        assert_eq!(student_quantile(0.95, 0), None);
    }

    #[test]
    fn wilson_of_the_literature() {
        // Newcombe, Statistics in Medicine 17 (1998) 857, table I, method 3.
        let interval = wilson(81, 263, 0.95).unwrap();
        assert!((interval.low - 0.2553).abs() < 5e-5 && (interval.high - 0.3662).abs() < 5e-5);
        let none = wilson(0, 20, 0.95).unwrap();
        assert_eq!(none.low, 0.0);
        assert!((none.high - 0.1611).abs() < 5e-5);
        assert_eq!(wilson(20, 20, 0.95).unwrap().high, 1.0);
        assert_eq!(wilson(0, 0, 0.95), None);
    }

    #[test]
    fn clusters_of_one_unit_are_plain_trials() {
        let mut sums = ClusterSums::default();
        (0..100).for_each(|i| sums.add(i64::from(i < 30), 1));
        near(sums.ratio().unwrap(), 0.3);
        // The sample standard deviation of the indicator over sqrt(m).
        near(sums.standard_error().unwrap(), (0.3 * 0.7 / 99.0f64).sqrt());
    }

    #[test]
    fn units_that_agree_inside_a_cluster_count_once() {
        let (mut one, mut ten) = (ClusterSums::default(), ClusterSums::default());
        for i in 0..50 {
            one.add(i64::from(i % 2), 1);
            ten.add(10 * i64::from(i % 2), 10);
        }
        near(one.standard_error().unwrap(), ten.standard_error().unwrap());
        near(one.share_interval(0.95).unwrap().low, ten.share_interval(0.95).unwrap().low);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        let held = (0..1000)
            .filter(|_| {
                let mut sums = ClusterSums::default();
                for _ in 0..40 {
                    // Units of a cluster share a rate, 0.2 on average.
                    let rate = 0.4 * rng.random::<f64>();
                    let n = rng.random_range(5..30);
                    let y = (0..n).filter(|_| rng.random::<f64>() < rate).count();
                    sums.add(y as i64, n);
                }
                sums.share_interval(0.95).unwrap().contains(0.2)
            })
            .count();
        assert!((925..=975).contains(&held), "{held} of 1000");
    }

    #[test]
    fn shares_at_the_ends_keep_a_width() {
        let mut sums = ClusterSums::default();
        (0..20).for_each(|_| sums.add(0, 7));
        assert_eq!(sums.share_interval(0.95), wilson(0, 20, 0.95));
        let mut full = ClusterSums::default();
        (0..20).for_each(|_| full.add(7, 7));
        assert_eq!(full.share_interval(0.95), wilson(20, 20, 0.95));
        assert_eq!(ClusterSums::default().share_interval(0.95), None);
        // A share that all have is as little certain.
        let mut thirds = ClusterSums::default();
        (0..21).for_each(|_| thirds.add(3, 9));
        let (interval, trials) = (thirds.share_interval(0.95).unwrap(), wilson(7, 21, 0.95).unwrap());
        near(interval.low, trials.low);
        near(interval.high, trials.high);
    }

    #[test]
    fn paired_differences() {
        // Mean 0.6, sample sd 0.5788, so t = 2.3180 with 4 degrees of freedom, whose distribution is
        // 1/2 + 3/8 u (1 - u²/12) with u = t / sqrt(1 + t²/4); t(0.975, 4) = 2.776445.
        let test = paired(&[1.2, 0.4, -0.3, 0.9, 0.8], 0.95).unwrap();
        near(test.mean, 0.6);
        near(test.interval.low, 0.6 - 2.776_445 * 0.258_843_6);
        let t = 0.6f64 / 0.258_843_582_110_895_64;
        let u = t / (1.0 + t * t / 4.0).sqrt();
        near(test.p_value, 2.0 * (0.5 - 0.375 * u * (1.0 - u * u / 12.0)));
        assert_eq!(paired(&[1.0], 0.95), None);
        assert_eq!(paired(&[0.0, 0.0], 0.95).unwrap().p_value, 1.0);
    }
}
