//! Weighs valid texts: whether another row is to be preferred to the one that passing texts speak for.

use std::cmp::Ordering;

use super::advised::{AdvisedRow, about, claimed, in_words};
use super::comparison::level;
use super::differences::{ComparedFigure, FigureDifference, PairedComparison};
use super::speed::ratio;
use crate::stats::signed;

/// A row with more valid texts than the chosen one, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Preference {
    /// It certainly has more, and no fewer texts pass.
    Certain(String),
    /// It may have more by chance, or fewer texts pass.
    Uncertain(String),
    /// No row has more.
    None,
}

/// A row that has more valid texts than another one, on the same molecules and generations.
struct ValidGain<'r> {
    row: &'r AdvisedRow<'r>,
    by: FigureDifference,
    /// The order of the two by the texts that pass.
    passed: Ordering,
    /// The number of rows for which intervals are corrected.
    rows: usize,
}

/// Returns the row of a model that is to be preferred to the chosen one: of those that certainly have more valid texts and lose no
/// texts that pass, the one with the most. `pairs` are the comparisons of the model's rows with their base.
pub(super) fn preferred(
    rows: &[AdvisedRow<'_>],
    chosen: &AdvisedRow<'_>,
    pairs: &[&PairedComparison],
) -> Preference {
    let is_base = !pairs.iter().any(|pair| pair.row == chosen.label);
    let mut gains: Vec<ValidGain<'_>> = Vec::new();
    for row in rows.iter().filter(|row| row.by_valid(chosen).is_gt()) {
        let Some(pair) = pairs.iter().find(|pair| pair.row == row.label) else { continue };
        let by = match pair.valid_against_automaton {
            Some(found) if chosen.label.is_automaton() => Some(found),
            _ if is_base => valid_figure(&pair.figures),
            _ => None,
        };
        let passed = row.by_passed_in(chosen, Some(*pair).filter(|_| is_base));
        gains.extend(by.map(|by| ValidGain { row, by, passed, rows: pair.rows }));
    }
    gains.sort_by(|a, b| b.row.by_valid(a.row));
    let certain = gains.iter().find(|gain| gain.is_certain() && gain.passed.is_ge());
    if let Some(gain) = certain {
        return Preference::Certain(gain.advised(chosen));
    }
    // Of those that are not advised, one with a certain gain tells most.
    let told = gains.iter().find(|gain| gain.is_certain()).or(gains.first());
    told.map_or(Preference::None, |gain| Preference::Uncertain(gain.remark(chosen)))
}

/// Returns the difference of valid texts, if there is one.
pub(super) fn valid_figure(figures: &[FigureDifference]) -> Option<FigureDifference> {
    figures.iter().find(|found| found.figure == ComparedFigure::Valid).copied()
}

impl ValidGain<'_> {
    fn is_certain(&self) -> bool {
        self.by.change(0.0) == Some(Ordering::Greater)
    }

    /// Advises to use the row: what it gains beside the chosen one, and its price.
    fn advised(&self, chosen: &AdvisedRow<'_>) -> String {
        let label = &self.row.label;
        // The mask excludes by the bounds by which the judge checks.
        let shared = if label.is_geometry() {
            " Its mask and the judge share their bounds, so a part of `valid` is by construction."
        } else {
            ""
        };
        let (about, name, gain) = (about(label), label.processor(), self.in_words(chosen));
        let (passed, before) = (self.row.counts.passed, chosen.beside(chosen.counts.passed, self.row));
        let price = self.price(chosen);
        format!("{about}use `{name}`: {gain}, {passed} pass instead of {before}{price}.{shared}")
    }

    /// Says why the row is not advised although it has more valid texts.
    fn remark(&self, chosen: &AdvisedRow<'_>) -> String {
        let (passed, before) = (self.row.counts.passed, chosen.beside(chosen.counts.passed, self.row));
        let why = if self.is_certain() {
            format!("but {passed} pass instead of {before}")
        } else {
            "which may be chance".to_owned()
        };
        let (about, gain) = (about(&self.row.label), self.in_words(chosen));
        format!("{about}with `{}`, {gain}, {why}.", self.row.label.processor())
    }

    /// Formats the gain: ``39 of 40 texts are valid instead of 22 with `automaton` (+42.5 [+20.1, +64.9] percentage points)``.
    fn in_words(&self, chosen: &AdvisedRow<'_>) -> String {
        let (valid, before) = (self.row.chemistry.valid, chosen.beside(chosen.chemistry.valid, self.row));
        let with = match &chosen.label {
            label if label.is_without_processor() => "without a logit processor".to_owned(),
            label => format!("with `{}`", label.processor()),
        };
        let interval = self.by.interval.map_or_else(String::new, |found| {
            format!(" [{}, {}]", signed(100.0 * found.low, 1), signed(100.0 * found.high, 1))
        });
        format!(
            "{valid} of {} texts are valid instead of {before} {with} ({}{interval} percentage points)",
            self.row.counts.samples,
            signed(100.0 * self.by.difference, 1)
        )
    }

    /// Formats the speed of the row beside that of the chosen one, if both are known.
    fn price(&self, chosen: &AdvisedRow<'_>) -> String {
        let Some(speed) = ratio(&self.row.times, &chosen.times, level(self.rows)) else {
            return String::new();
        };
        match claimed(speed) {
            Some(speed) => format!(", {}", in_words(&speed)),
            None => ", and any difference in speed may be chance".to_owned(),
        }
    }
}
