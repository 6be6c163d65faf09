//! The difference of two shares on the same clusters of texts.

use crate::stats::interval::{Interval, student_quantile};

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
    let interval = student_quantile(level, (clusters.len() as u64).saturating_sub(1))
        .map(|quantile| Interval::around(difference, quantile * (squares / (m - 1.0) / m).sqrt()));
    Some(RatioDifference { without, with, difference, interval })
}
