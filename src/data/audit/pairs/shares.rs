//! The difference of two shares on the same clusters of texts.

use crate::stats::interval::{Interval, student_quantile, wilson};

drift_core::counters! {
    /// How many of how many have a property.
    #[derive(Debug, Clone, Copy, Default)]
    pub(in super::super) struct Share {
        /// How many have it.
        pub count: u64,
        /// Of how many.
        pub of: u64,
    }
}

/// The shares of one molecule or prompt in the base row and in the other.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Cluster {
    /// In the base row.
    pub before: Share,
    /// In the other row.
    pub after: Share,
}

/// The difference of two shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct RatioDifference {
    /// The share in the base row.
    pub without: f64,
    /// The share in the other row.
    pub with: f64,
    /// Their difference.
    pub difference: f64,
    /// The interval of the difference; `None` for fewer than two clusters.
    pub interval: Option<Interval>,
}

/// Returns the difference of two ratios on the same clusters, with the interval of its linear approximation (W. G. Cochran, Sampling
/// Techniques, 3rd ed., section 6.5); `None` if either is a share of nothing.
pub(in super::super) fn ratio_difference(clusters: &[Cluster], level: f64) -> Option<RatioDifference> {
    let sum = |of: fn(&Cluster) -> u64| clusters.iter().map(of).sum::<u64>() as f64;
    let (y0, n0) = (sum(|c| c.before.count), sum(|c| c.before.of));
    let (y1, n1) = (sum(|c| c.after.count), sum(|c| c.after.of));
    // A share of nothing is undefined, not 0.
    if n0 == 0.0 || n1 == 0.0 {
        return None;
    }
    let (without, with, m) = (y0 / n0, y1 / n1, clusters.len() as f64);
    // The first-order contribution of a molecule to the difference of the two ratios. The spread of the contributions gives that of
    // the difference.
    let residual = |Cluster { before, after }: &Cluster| {
        (after.count as f64 - with * after.of as f64) * m / n1
            - (before.count as f64 - without * before.of as f64) * m / n0
    };
    let squares: f64 = clusters.iter().map(|cluster| residual(cluster).powi(2)).sum();
    let difference = with - without;
    // A single molecule has no spread, so there is no quantile and no interval.
    let spread = student_quantile(level, (clusters.len() as u64).saturating_sub(1))
        .map(|quantile| Interval::around(difference, quantile * (squares / (m - 1.0) / m).sqrt()));
    // What remains of a sum of zeros is its rounding error.
    let interval = if difference != 0.0 && squares < 1e-20 * m {
        spread.and_then(|_| unanimous(difference, clusters.len() as u64, level))
    } else {
        spread
    };
    Some(RatioDifference { without, with, difference, interval })
}

/// Returns the interval of a difference that is the same in all of `clusters` clusters, which shows no spread.
///
/// Each cluster counts as one trial of [`wilson`]: at least a share `w` of all such clusters has this difference, and that of the others
/// may be anything from -1 to 1. So the mean lies between `w difference - (1 - w)` and `w difference + (1 - w)`.
pub(super) fn unanimous(difference: f64, clusters: u64, level: f64) -> Option<Interval> {
    let share = wilson(clusters, clusters, level)?.low;
    Some(Interval::around(share * difference, 1.0 - share))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fallen(clusters: usize) -> Interval {
        let cluster = Cluster { before: Share { count: 4, of: 4 }, after: Share { count: 1, of: 4 } };
        ratio_difference(&vec![cluster; clusters], 0.95).unwrap().interval.unwrap()
    }

    #[test]
    fn few_molecules_that_agree_prove_nothing() {
        let two = fallen(2);
        assert!(two.contains(-0.75) && two.contains(0.0), "{two:?}");
        assert!(fallen(10).high < 0.0 && fallen(10).low > -1.0);
        let width = |clusters| fallen(clusters).high - fallen(clusters).low;
        assert!(width(100) < width(10) && width(100) > 0.0);
        assert_eq!(ratio_difference(&[Cluster::default(); 3], 0.95), None);
        let alone = Cluster { before: Share { count: 4, of: 4 }, after: Share { count: 1, of: 4 } };
        assert_eq!(ratio_difference(&[alone], 0.95).unwrap().interval, None);
    }

    #[test]
    fn molecules_that_do_not_change_have_no_interval_around_another_value() {
        let cluster = Cluster { before: Share { count: 3, of: 4 }, after: Share { count: 3, of: 4 } };
        assert_eq!(ratio_difference(&[cluster; 2], 0.95).unwrap().interval, Some(Interval::around(0.0, 0.0)));
    }
}
