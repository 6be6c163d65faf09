//! What to do, in words, from the numbers of an evaluation.

use super::record::{PairedComparison, RunReport};
use crate::constraint::LpKind;
use crate::stats::Interval;
use crate::stats::bootstrap::Mean;

/// A difference in geometry up to this is none worth speaking of, in Å.
const NEGLIGIBLE_ANGSTROM: f64 = 0.02;

/// Sentences for each model: which logit processor, whether to use one at all, what it costs and saves, and what to
/// stay away from. Names of logit processors and placeholders are in backticks.
pub(super) fn advice(runs: &[RunReport], comparisons: &[PairedComparison]) -> Vec<String> {
    let mut models: Vec<(&str, &str)> = runs.iter().map(|run| (&*run.model, &*run.tokenizer)).collect();
    models.dedup();
    let mut out = Vec::new();
    for (model, tokenizer) in models {
        let own: Vec<&RunReport> =
            runs.iter().filter(|run| run.model == model && run.tokenizer == tokenizer).collect();
        let pairs: Vec<&PairedComparison> = comparisons.iter().filter(|pair| pair.model == model).collect();
        out.extend(of_model(model, &own, &pairs));
    }
    out
}

fn of_model(model: &str, runs: &[&RunReport], pairs: &[&PairedComparison]) -> Vec<String> {
    let mut out = Vec::new();
    let without = runs.iter().find(|run| run.lp == LpKind::None);
    let exact = runs.iter().find(|run| run.lp == LpKind::Automaton);
    if let (Some(without), Some(exact)) = (without, exact) {
        let pair = pairs.iter().find(|pair| pair.lp == LpKind::Automaton);
        out.push(whether(model, without, exact, pair.copied()));
    } else if let Some(best) = runs.iter().max_by_key(|run| run.outcome.passed) {
        let (passed, samples) = (best.outcome.passed, best.outcome.samples);
        let label = best.label();
        out.push(format!("{model}: of what was run `{label}` passes most texts, {passed} of {samples}."));
    }
    let harmful: Vec<String> = pairs
        .iter()
        .filter(|pair| pair.lp != LpKind::Automaton)
        .filter_map(|pair| {
            let run = runs.iter().find(|run| run.lp == pair.lp && run.placeholder == pair.placeholder)?;
            harm(run, pair)
        })
        .collect();
    out.extend(harmful);
    out
}

/// Whether to use a logit processor at all.
fn whether(model: &str, without: &RunReport, exact: &RunReport, pair: Option<&PairedComparison>) -> String {
    let (passed, samples) = (exact.outcome.passed, exact.outcome.samples);
    let alone = without.outcome.passed;
    let speed = pair.map_or(1.0, |pair| pair.speed_ratio);
    let geometry = pair.and_then(worst);
    let cost = match geometry {
        None => "nothing can be said of its geometry".to_owned(),
        Some((worst, _)) if is_costly(&worst) => format!("but it costs {} Å of geometry", difference(&worst)),
        Some((_, interval)) if interval.high <= NEGLIGIBLE_ANGSTROM => "its geometry is as good".to_owned(),
        Some((worst, _)) => format!("its geometry differs by {} Å, which may be chance", difference(&worst)),
    };
    let time = match speed {
        s if s >= 1.05 => format!("{s:.2} times as fast"),
        s if s <= 0.95 => format!("{:.0} % slower", (1.0 - s) * 100.0),
        _ => "as fast".to_owned(),
    };
    let numbers = format!("{passed} of {samples} texts pass instead of {alone}, {cost}, and it is {time}");
    let costly = geometry.is_some_and(|(worst, _)| is_costly(&worst));
    if passed < alone || costly && passed == alone {
        format!("{model}: use no logit processor. With `automaton` {numbers}.")
    } else if alone == samples && speed < 1.05 {
        format!("{model}: it needs no logit processor. With `automaton` {numbers}.")
    } else {
        format!("{model}: use `automaton`: {numbers}.")
    }
}

/// What a position template does to this model, if it does harm.
fn harm(run: &RunReport, pair: &PairedComparison) -> Option<String> {
    let share = |count: u64| 100.0 * count as f64 / run.outcome.blocks.max(1) as f64;
    let mut harms = Vec::new();
    let counts = [
        (run.outcome.junk_blocks_strict, "of blocks are junk"),
        (run.outcome.truncated_blocks.unwrap_or(0), "of blocks lose digits"),
        (run.outcome.invented_blocks, "of blocks get invented digits"),
    ];
    let some = counts.iter().filter(|(n, _)| *n > 0);
    harms.extend(some.map(|(n, what)| match share(*n) {
        share if share < 0.1 => format!("fewer than 0.1 % {what}"),
        share => format!("{share:.1} % {what}"),
    }));
    if let Some(bond) = pair
        .bond_error_difference_angstrom
        .filter(|bond| bond.interval.is_some_and(|interval| interval.low > 0.0))
    {
        harms.push(format!("bond lengths are off by {} Å more than without", difference(&bond)));
    }
    (!harms.is_empty()).then(|| format!("{}: `{}` does harm: {}.", run.model, pair.label(), harms.join(", ")))
}

/// The larger of the differences in geometry with its interval.
fn worst(pair: &PairedComparison) -> Option<(Mean, Interval)> {
    let differences = [pair.bond_error_difference_angstrom, pair.mat_precision_difference_angstrom];
    let known = differences.into_iter().flatten().filter_map(|mean| Some((mean, mean.interval?)));
    known.max_by(|(a, _), (b, _)| a.mean.total_cmp(&b.mean))
}

fn is_costly(mean: &Mean) -> bool {
    mean.interval.is_some_and(|interval| interval.low > NEGLIGIBLE_ANGSTROM)
}

/// `+0.088 [+0.045, +0.131]`.
fn difference(mean: &Mean) -> String {
    let interval = mean.interval.map(|Interval { low, high }| format!(" [{low:+.3}, {high:+.3}]"));
    format!("{:+.3}{}", mean.mean, interval.unwrap_or_default())
}
