//! Statistics of coordinates, independent of any tokenizer.
//!
//! - [`CoordinateStats`] counts conformers one by one and can be merged; [`StatsReport`] is its result.
//! - [`FaultStats`] counts conformers whose geometry cannot be right.
//! - [`bootstrap`] computes intervals of means over molecules by resampling.
//! - [`interval`] contains confidence intervals of shares, of ratios over clusters, and of paired differences.
//! - [`histogram`] contains counts by value and their quantiles, [`moments`] contains means and standard deviations.
//!
//! Accumulators hold only integers, so that merging is associative and commutative, and the result does not depend on the number of
//! threads or their order. Floating-point arithmetic begins in [`CoordinateStats::report`].

pub mod bootstrap;
pub mod coordinates;
pub mod faults;
pub mod histogram;
pub mod interval;
pub mod moments;
pub mod report;
pub mod texts;

pub use coordinates::CoordinateStats;
pub use faults::{ConformerFaults, FaultFinder, FaultReport, FaultStats};
pub use interval::Interval;
pub use report::StatsReport;
pub use texts::{TextReport, TextStats};

/// Returns the ratio of a count to another, 0 to 1; 0 if the other is 0.
pub fn share(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}

/// Removes the sign from a number that rounds to zero: `-0.00` would look like a value below zero.
pub fn unsigned_zero(text: String) -> String {
    match text.strip_prefix(['+', '-']) {
        Some(digits) if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) => digits.to_owned(),
        _ => text,
    }
}

/// Returns a difference with its sign, or without one if it rounds to zero.
pub fn signed(value: f64, decimals: usize) -> String {
    unsigned_zero(format!("{value:+.decimals$}"))
}
