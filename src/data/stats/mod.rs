//! Statistics of coordinates; knows no tokenizer.
//!
//! - [`CoordinateStats`] counts conformers one by one and merges; [`StatsReport`] is what it says at the end.
//! - [`bootstrap`] gives intervals of means over molecules.
//! - [`interval`] holds confidence intervals: of shares, of ratios over clusters, of paired differences.
//! - [`bootstrap`] holds intervals of means by resampling.
//! - [`histogram`] holds counts by value and their quantiles, [`moments`] means and standard deviations.
//!
//! Accumulators hold integers only, so that merging is associative and commutative and a result does not depend on
//! how many threads counted or in which order. Floating point begins in [`CoordinateStats::report`].

pub mod bootstrap;
pub mod coordinates;
pub mod histogram;
pub mod interval;
pub mod moments;
pub mod report;
pub mod texts;

pub use coordinates::CoordinateStats;
pub use interval::Interval;
pub use report::StatsReport;
pub use texts::{TextReport, TextStats};

/// The share that a count is of another, 0 to 1; 0 of nothing.
pub fn share(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}
