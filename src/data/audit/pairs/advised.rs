//! A row as advice sees it, and how advice writes its figures.

use std::cmp::Ordering;

use super::super::chemistry::ChemistryReport;
use super::super::counts::SampleCounts;
use super::super::references::GeometryReport;
use super::super::row_label::RowLabel;
use super::differences::{PairedComparison, SpeedRatio};
use super::speed::BatchTimes;
use crate::stats::{Interval, signed};

/// One text in so many without an end is no accident.
const TENTH: u64 = 10;

/// The figures of a row on which advice rests.
#[derive(Debug, Clone)]
pub struct AdvisedRow<'r> {
    /// What is known of the row.
    pub label: RowLabel,
    /// The name of the tokenizer, if it is known.
    pub tokenizer: Option<&'r str>,
    /// The counts of its texts.
    pub counts: &'r SampleCounts,
    /// The chemistry of its texts.
    pub chemistry: &'r ChemistryReport,
    /// Its geometry, if there are references.
    pub geometry: Option<&'r GeometryReport>,
    /// The time of each batch; empty if it is not known.
    pub times: BatchTimes,
}

impl AdvisedRow<'_> {
    /// Returns the number of its valid texts; `None` if none of those that pass was checked.
    pub(super) fn valid(&self) -> Option<u64> {
        (self.chemistry.checked > 0 || self.counts.passed == 0).then_some(self.chemistry.valid)
    }

    /// Says that many of its texts have no end: they fail for the limit of tokens, or because the model never ends one.
    pub(super) fn without_end(&self) -> Option<String> {
        let (cut, samples) = (self.counts.no_eos, self.counts.samples);
        (cut > 0 && cut >= samples / TENTH).then(|| {
            format!(
                "{}`{}`: {cut} of {samples} texts have no end (no EOS). Give them more tokens, or see why the model ends none.",
                about(&self.label),
                self.label.processor()
            )
        })
    }

    /// Returns whether it is of the same model and tokenizer as another row.
    pub(super) fn is_of_model(&self, other: &AdvisedRow<'_>) -> bool {
        self.label.model == other.label.model && self.tokenizer == other.tokenizer
    }

    /// Orders rows by the share of texts that pass. Rows may have unequal numbers of texts.
    pub(super) fn by_passed(&self, other: &AdvisedRow<'_>) -> Ordering {
        self.share(self.counts.passed).total_cmp(&other.share(other.counts.passed))
    }

    /// Orders a row and its base by the texts that pass. Of rows with unequal numbers of texts those count that both have, if `pair`
    /// compares any.
    pub(super) fn by_passed_in(&self, base: &AdvisedRow<'_>, pair: Option<&PairedComparison>) -> Ordering {
        let is_unequal = self.counts.samples != base.counts.samples;
        let paired = pair.filter(|pair| is_unequal && !pair.figures.is_empty());
        paired.map_or_else(|| self.by_passed(base), |pair| pair.passed_difference.cmp(&0))
    }

    /// Orders rows by the share of valid texts; those of which it is not known are first.
    pub(super) fn by_valid(&self, other: &AdvisedRow<'_>) -> Ordering {
        let share = |row: &AdvisedRow<'_>| row.valid().map(|count| row.share(count));
        share(self).partial_cmp(&share(other)).unwrap_or(Ordering::Equal)
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.counts.samples.max(1) as f64
    }

    /// Formats a count of its texts beside one of another row: `22`, or `22 of 40` if the other row has more or fewer texts.
    pub(super) fn beside(&self, count: u64, other: &AdvisedRow<'_>) -> String {
        let samples = self.counts.samples;
        if samples == other.counts.samples { count.to_string() } else { format!("{count} of {samples}") }
    }
}

/// Returns the beginning of a sentence about a model.
pub(super) fn about(label: &RowLabel) -> String {
    label.model.as_ref().map_or_else(String::new, |model| format!("{model}: "))
}

/// Returns a speed ratio about which a claim can be made: its interval does not contain 1.
pub(super) fn claimed(speed: SpeedRatio) -> Option<SpeedRatio> {
    Some(speed).filter(|speed| speed.interval.is_some_and(|interval| !interval.contains(1.0)))
}

/// Formats a speed ratio: `1.37 times as fast [1.31, 1.43]`, with its unit.
pub(super) fn in_words(speed: &SpeedRatio) -> String {
    let range = speed.interval.map(|Interval { low, high }| format!(" [{low:.2}, {high:.2}]"));
    format!(
        "{:.2} times as fast{} by texts per {}",
        speed.ratio,
        range.unwrap_or_default(),
        speed.measure.unit()
    )
}

/// Formats a difference: `+0.088 [+0.045, +0.131]`.
pub(super) fn difference(mean: f64, Interval { low, high }: Interval) -> String {
    format!("{} [{}, {}]", signed(mean, 3), signed(low, 3), signed(high, 3))
}

#[cfg(test)]
mod tests {
    use super::super::differences::SpeedMeasure;
    use super::*;

    #[test]
    fn no_speed_is_claimed_whose_interval_holds_one() {
        let speed = |ratio, half| SpeedRatio {
            ratio,
            interval: Some(Interval::around(ratio, half)),
            batches: 4,
            measure: SpeedMeasure::Cpu,
        };
        assert_eq!(claimed(speed(1.3, 0.4)), None);
        assert_eq!(
            in_words(&claimed(speed(1.3, 0.1)).unwrap()),
            "1.30 times as fast [1.20, 1.40] by texts per CPU second"
        );
        assert_eq!(claimed(SpeedRatio { interval: None, ..speed(1.3, 0.1) }), None);
    }
}
