//! Derives advice, in words, from the numbers of rows.
//!
//! A logit processor is not blamed for anything that the model does without it: every claim is a difference from the run without a
//! logit processor, and its interval, corrected for the number of rows in the table, lies on one side of zero.

use std::cmp::Ordering;

use super::super::row_label::RowLabel;
use super::advised::{AdvisedRow, about, claimed, difference, in_words};
use super::comparison::level;
use super::differences::{ComparedFigure, FigureDifference, PairedComparison, RescuedTexts};
use super::preferred::{Preference, preferred, valid_figure};
use super::speed::ratio;
use crate::stats::Interval;
use crate::stats::bootstrap::Mean;

/// The largest difference in geometry that counts as negligible, in Å.
const NEGLIGIBLE_ANGSTROM: f64 = 0.02;

/// The largest length that rounds to zero with three decimals, in Å.
const INVISIBLE_ANGSTROM: f64 = 0.0005;

/// Sentences for each model: which logit processor to use, if any, what it costs and saves, what to avoid, and which deviations are
/// only upper bounds. Names of logit processors and placeholders are in backticks.
///
/// `base` names the base row if it is not the one without a logit processor of each model.
pub fn advice(
    rows: &[AdvisedRow<'_>],
    comparisons: &[PairedComparison],
    base: Option<&RowLabel>,
) -> Vec<String> {
    let mut out = Vec::new();
    for own in by_model(rows) {
        let (own, label) = (&own[..], &own[0].label);
        let pairs: Vec<&PairedComparison> =
            comparisons.iter().filter(|pair| pair.row.model == label.model).collect();
        out.extend(of_model(own, &pairs));
        out.extend(fastest(own));
        out.extend(own.iter().filter_map(AdvisedRow::without_end));
        let inexact = |row: &AdvisedRow<'_>| {
            Some(format!("`{}`: {}.", row.label.processor(), row.geometry?.inexact()?))
        };
        out.extend(own.iter().filter_map(inexact));
    }
    if let Some(rows) = comparisons.iter().map(|pair| pair.rows).max() {
        let rows = match (rows, base) {
            (1, _) => "one row".to_owned(),
            (_, None) => format!("all {rows} rows of a model at once"),
            (_, Some(_)) => format!("all {rows} rows at once"),
        };
        out.push(format!(
            "Brackets show 95 % intervals. Harm is listed where the interval excludes zero, corrected for {rows} (Bonferroni) but not for the number of figures."
        ));
    }
    out
}

/// Advice for models with random weights, for which only the speed is meaningful.
pub fn speed_advice(rows: &[AdvisedRow<'_>]) -> Vec<String> {
    by_model(rows).iter().filter_map(|own| fastest(own)).collect()
}

/// Returns the rows of each model and tokenizer, in the order of their first rows.
fn by_model<'r>(rows: &[AdvisedRow<'r>]) -> Vec<Vec<AdvisedRow<'r>>> {
    let mut models: Vec<Vec<AdvisedRow<'r>>> = Vec::new();
    for row in rows {
        match models.iter_mut().find(|own| own[0].is_of_model(row)) {
            Some(own) => own.push(row.clone()),
            None => models.push(vec![row.clone()]),
        }
    }
    models
}

fn of_model(rows: &[AdvisedRow<'_>], pairs: &[&PairedComparison]) -> Vec<String> {
    let without = rows.iter().find(|row| row.label.is_without_processor());
    let exact = rows.iter().find(|row| row.label.is_automaton());
    let (mut out, told) = match (without, exact) {
        (Some(without), Some(exact)) => {
            // Beside another base, the comparison tells nothing of what the model does alone.
            let is_base = !pairs.iter().any(|pair| pair.row == without.label);
            let pair = pairs.iter().find(|pair| is_base && pair.row.is_automaton()).copied();
            (with_automaton(rows, without, exact, pairs, pair), pair)
        }
        _ => (of_others(rows, pairs).into_iter().collect(), None),
    };
    let others = pairs.iter().filter(|pair| told.is_none_or(|told| told.row != pair.row));
    out.extend(others.filter_map(|pair| harm(pair)));
    out
}

/// Advice for a model with a row without a logit processor and one with the automaton. `pair` compares the two.
fn with_automaton(
    rows: &[AdvisedRow<'_>],
    without: &AdvisedRow<'_>,
    exact: &AdvisedRow<'_>,
    pairs: &[&PairedComparison],
    pair: Option<&PairedComparison>,
) -> Vec<String> {
    let (verdict, numbers) = whether(without, exact, pair);
    let chosen = if verdict == Verdict::Automaton { exact } else { without };
    let about = about(&exact.label);
    let mut out = match preferred(rows, chosen, pairs) {
        Preference::Certain(sentence) => vec![sentence, format!("{about}with `automaton`, {numbers}.")],
        Preference::Uncertain(remark) => vec![verdict.sentence(&about, &numbers), remark],
        Preference::None => vec![verdict.sentence(&about, &numbers)],
    };
    let found = pair.and_then(|pair| pair.rescued.as_ref());
    out.extend(found.map(|found| rescued(&exact.label, found, exact.geometry.is_some())));
    out
}

/// Advice for rows of which one is the base, or none.
fn of_others(rows: &[AdvisedRow<'_>], pairs: &[&PairedComparison]) -> Option<String> {
    let base = rows.iter().find(|row| !pairs.iter().any(|pair| pair.row == row.label));
    if let Some(Preference::Certain(sentence)) = base.map(|base| preferred(rows, base, pairs)) {
        return Some(sentence);
    }
    most(rows).filter(|_| rows.len() > 1 || pairs.is_empty())
}

/// Names the rows with the most texts that pass and that are valid.
fn most(rows: &[AdvisedRow<'_>]) -> Option<String> {
    let passing = rows.iter().max_by(|a, b| a.by_passed(b).then(a.by_valid(b)))?;
    if passing.counts.passed == 0 {
        return None;
    }
    let valid = rows.iter().max_by(|a, b| a.by_valid(b).then(a.by_passed(b)))?;
    let (about, label) = (about(&passing.label), passing.label.processor());
    let (passed, samples) = (passing.counts.passed, passing.counts.samples);
    let and_valid = match valid.valid() {
        None => String::new(),
        Some(count) if valid.label == passing.label => format!(", and most are valid ({count})"),
        Some(count) => {
            format!(
                ", and most are valid with `{}` ({count} of {})",
                valid.label.processor(),
                valid.counts.samples
            )
        }
    };
    Some(format!("{about}most texts pass with `{label}` ({passed} of {samples}){and_valid}."))
}

/// Whether to use the automaton rather than no logit processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It does harm.
    Without,
    /// It changes nothing.
    NotNeeded,
    Automaton,
}

impl Verdict {
    fn sentence(self, about: &str, numbers: &str) -> String {
        match self {
            Verdict::Without => format!("{about}use no logit processor. With `automaton` {numbers}."),
            Verdict::NotNeeded => format!("{about}no logit processor is needed. With `automaton` {numbers}."),
            Verdict::Automaton => format!("{about}use `automaton`: {numbers}."),
        }
    }
}

/// Says whether to use the automaton, and in words what it changes.
fn whether(
    without: &AdvisedRow<'_>,
    exact: &AdvisedRow<'_>,
    pair: Option<&PairedComparison>,
) -> (Verdict, String) {
    let passes = exact.by_passed_in(without, pair);
    let geometry = pair.and_then(worst);
    let outcome = match passes {
        Ordering::Greater => "more texts pass",
        Ordering::Equal => "as many texts pass",
        Ordering::Less => "fewer texts pass",
    };
    let cost = match geometry {
        // They were not compared with each other.
        None if pair.is_none() => "",
        None if exact.geometry.is_none() && without.geometry.is_none() => {
            ", and there are no references to compare geometry with"
        }
        None => ", and too few texts pass both ways to compare geometry",
        Some(found) if found.is_certain() => ", and their geometry is worse",
        Some(found) if found.interval.high <= NEGLIGIBLE_ANGSTROM => {
            ", and texts that pass both ways keep their geometry"
        }
        Some(_) => ", and any difference in geometry may be chance",
    };
    let by = geometry.map(GeometryDifference::in_words).unwrap_or_default();
    let valid = exact.valid().zip(without.valid());
    let valid = valid.map_or_else(String::new, |(with, alone)| {
        format!(", {with} are valid instead of {}", without.beside(alone, exact))
    });
    let speed = pair.and_then(|pair| pair.speed).and_then(claimed);
    let time = speed.map_or_else(String::new, |speed| format!(", {}", in_words(&speed)));
    let (passed, samples) = (exact.counts.passed, exact.counts.samples);
    let alone = without.beside(without.counts.passed, exact);
    let numbers = format!("{outcome}{cost} ({passed} of {samples} pass instead of {alone}{valid}{by}{time})");
    let change = pair.and_then(|pair| valid_figure(&pair.figures)?.change(0.0));
    let is_costly = geometry.is_some_and(GeometryDifference::is_certain) && change != Some(Ordering::Greater);
    let is_better = passes == Ordering::Greater
        || change == Some(Ordering::Greater)
        || speed.is_some_and(|speed| speed.ratio > 1.0);
    let is_worse = passes == Ordering::Less || change == Some(Ordering::Less);
    let verdict = if is_worse || is_costly && passes == Ordering::Equal {
        Verdict::Without
    } else if without.counts.passed == without.counts.samples && !is_better {
        Verdict::NotNeeded
    } else {
        Verdict::Automaton
    };
    (verdict, numbers)
}

/// Describes the texts that pass only with the automaton.
fn rescued(label: &RowLabel, found: &RescuedTexts, has_references: bool) -> String {
    let RescuedTexts {
        texts,
        molecules_compared,
        bond_error_difference_angstrom,
        nearest_difference_angstrom,
    } = found;
    let count = if *texts == 1 { "1 text passes".to_owned() } else { format!("{texts} texts pass") };
    let begin = format!("{}{count} with `automaton` only", about(label));
    if !has_references {
        return format!("{begin}.");
    }
    let figures = [
        (bond_error_difference_angstrom, "bond lengths"),
        (nearest_difference_angstrom, "least RMSD to a reference"),
    ];
    let known: Vec<String> = figures
        .iter()
        .filter_map(|(mean, what)| {
            let Mean { mean, interval, .. } = (*mean).as_ref()?;
            let interval = (*interval)?;
            let verdict = match interval {
                Interval { low, .. } if low > INVISIBLE_ANGSTROM => "worse",
                Interval { high, .. } if high < -INVISIBLE_ANGSTROM => "better",
                Interval { high, .. } if high <= NEGLIGIBLE_ANGSTROM => "as good",
                _ => "hard to tell apart",
            };
            Some(format!("{what} {verdict} ({} Å)", difference(*mean, interval)))
        })
        .collect();
    if known.is_empty() {
        return format!(
            "{begin}; too few of their molecules have other texts to compare their geometry with."
        );
    }
    format!(
        "{begin}; beside texts of the same molecules that pass both ways: {} ({molecules_compared} molecules).",
        known.join(", ")
    )
}

/// Returns the harm that a logit processor does to this model, compared with the model without it.
fn harm(pair: &PairedComparison) -> Option<String> {
    let harms: Vec<String> = pair.figures.iter().filter(|figure| is_worse(figure)).map(shown).collect();
    (!harms.is_empty())
        .then(|| format!("{}`{}` does harm: {}.", about(&pair.row), pair.row.processor(), harms.join("; ")))
}

/// Returns whether a figure is worse with the logit processor than without, judged by its interval.
fn is_worse(found: &FigureDifference) -> bool {
    let least = if found.figure.is_length() { INVISIBLE_ANGSTROM } else { 0.0 };
    let worse = if found.figure.more_is_better() { Ordering::Less } else { Ordering::Greater };
    found.change(least) == Some(worse)
}

/// Formats a figure: `junk blocks 5.2 % instead of 0.1 %`. The intervals are in the record.
fn shown(found: &FigureDifference) -> String {
    let FigureDifference { figure, without, with, .. } = *found;
    if figure.is_length() {
        return format!("{} {with:.3} Å instead of {without:.3} Å", figure.name());
    }
    format!("{} {:.1} % instead of {:.1} %", figure.name(), 100.0 * with, 100.0 * without)
}

/// A difference in geometry between texts that pass in both rows.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GeometryDifference {
    /// Its mean over the molecules, in Å.
    difference: f64,
    interval: Interval,
    molecules: usize,
}

impl GeometryDifference {
    /// Returns whether the row is certainly worse.
    fn is_certain(self) -> bool {
        self.interval.low > NEGLIGIBLE_ANGSTROM
    }

    /// Formats it: `, geometry +0.012 [+0.004, +0.020] Å over 52 molecules`.
    fn in_words(self) -> String {
        let unit = if self.molecules == 1 { "molecule" } else { "molecules" };
        let by = difference(self.difference, self.interval);
        format!(", geometry {by} Å over {} {unit}", self.molecules)
    }
}

/// Returns the difference in geometry that matters most. A certain loss takes precedence, since a larger one that may be chance would
/// hide it. Otherwise it is the difference that may be the largest loss.
fn worst(pair: &PairedComparison) -> Option<GeometryDifference> {
    let wanted = [
        (ComparedFigure::BondLengthError, pair.bond_error_difference_angstrom),
        (ComparedFigure::MatPrecision, pair.mat_precision_difference_angstrom),
    ];
    let known = wanted.into_iter().filter_map(|(figure, mean)| {
        let found = pair.figures.iter().find(|found| found.figure == figure)?;
        let molecules = mean.map_or(0, |mean| mean.items);
        Some(GeometryDifference { difference: found.difference, interval: found.interval?, molecules })
    });
    known.max_by(|a, b| a.is_certain().cmp(&b.is_certain()).then(a.interval.high.total_cmp(&b.interval.high)))
}

/// Names the row that is faster than every other one, if there is one. With more rows, the intervals are wider.
fn fastest(rows: &[AdvisedRow<'_>]) -> Option<String> {
    let level = level(rows.len() - 1);
    let best = (0..rows.len()).find(|at| rows.len() > 1 && is_fastest(rows, *at, level))?;
    let next = others(rows, best).filter_map(|other| ratio(&rows[best].times, &other.times, level));
    let next = next.min_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    let (about, label) = (about(&rows[best].label), rows[best].label.processor());
    Some(format!("{about}`{label}` is fastest: {} as the next one.", in_words(&next)))
}

/// Returns the rows but for one.
fn others<'a, 'r>(rows: &'a [AdvisedRow<'r>], at: usize) -> impl Iterator<Item = &'a AdvisedRow<'r>> {
    rows.iter().enumerate().filter(move |(other, _)| *other != at).map(|(_, row)| row)
}

/// Returns whether a row is faster than every other one, by an interval of this level.
fn is_fastest(rows: &[AdvisedRow<'_>], at: usize, level: f64) -> bool {
    others(rows, at).all(|other| {
        let speed = ratio(&rows[at].times, &other.times, level).and_then(claimed);
        speed.is_some_and(|speed| speed.ratio > 1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::compared;
    use super::*;

    fn pair(figures: Vec<FigureDifference>) -> PairedComparison {
        let row =
            RowLabel { model: Some("m".to_owned()), lp: Some("allowlist".to_owned()), ..RowLabel::default() };
        PairedComparison { rows: 6, speed_ratio: Some(1.0), ..compared(row, figures) }
    }

    fn figure(figure: ComparedFigure, difference: f64, half: f64) -> FigureDifference {
        let interval = Some(Interval::around(difference, half));
        FigureDifference { figure, without: 0.0074, with: 0.0074 + difference, difference, interval }
    }

    #[test]
    fn nothing_is_blamed_that_the_model_does_alone() {
        // As much junk as without, and less; a difference in bonds that no decimal shows.
        let alone = vec![
            figure(ComparedFigure::JunkBlocks, 0.0, 0.0),
            figure(ComparedFigure::TruncatedBlocks, -0.0006, 0.0004),
            figure(ComparedFigure::InventedBlocks, 0.0003, 0.0005),
            figure(ComparedFigure::BondLengthError, 0.00001, 0.000001),
            figure(ComparedFigure::Passed, 0.1, 0.05),
        ];
        assert_eq!(harm(&pair(alone)), None);
        let harmful = vec![
            figure(ComparedFigure::JunkBlocks, 0.05, 0.01),
            figure(ComparedFigure::Passed, -0.2, 0.1),
            figure(ComparedFigure::MatPrecision, 0.2, 0.1),
        ];
        let said = harm(&pair(harmful)).unwrap();
        assert!(said.contains("junk blocks 5.7 % instead of 0.7 %"), "{said}");
        assert!(
            said.contains("texts that pass -19.3 %") && said.contains("MAT-P 0.207 Å instead of 0.007 Å"),
            "{said}"
        );
    }

    #[test]
    fn a_certain_loss_is_not_hidden_by_a_larger_one_that_may_be_chance() {
        let certain = figure(ComparedFigure::BondLengthError, 0.05, 0.01);
        let may_be = figure(ComparedFigure::MatPrecision, 0.2, 0.5);
        assert_eq!(worst(&pair(vec![certain, may_be])).unwrap().difference, 0.05);
        // Of two that may be chance, the one that may be larger.
        let small = figure(ComparedFigure::BondLengthError, 0.01, 0.02);
        assert_eq!(worst(&pair(vec![small, may_be])).unwrap().difference, 0.2);
    }

    #[test]
    fn rescued_texts_are_judged_beside_kept_ones() {
        let mean = |mean, half| Some(Mean { items: 9, mean, interval: Some(Interval::around(mean, half)) });
        let found = RescuedTexts {
            texts: 237,
            molecules_compared: 90,
            bond_error_difference_angstrom: mean(0.02, 0.01),
            nearest_difference_angstrom: mean(0.1, 0.2),
        };
        let said = rescued(&RowLabel::default(), &found, true);
        assert!(
            said.contains("237 texts pass with `automaton` only") && said.contains("(90 molecules)"),
            "{said}"
        );
        assert!(said.contains("bond lengths worse (+0.020 [+0.010, +0.030] Å)"), "{said}");
        assert!(said.contains("least RMSD to a reference hard to tell apart (+0.100"), "{said}");
        let alone = RescuedTexts { texts: 3, ..RescuedTexts::default() };
        assert!(rescued(&RowLabel::default(), &alone, true).contains("too few of their molecules"));
        assert_eq!(rescued(&RowLabel::default(), &alone, false), "3 texts pass with `automaton` only.");
    }
}
