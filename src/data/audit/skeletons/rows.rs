//! Sums up rows of verdicts, and compares them with a base row, prompt by prompt.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::pairs::{Cluster, RatioDifference, Share, level, ratio_difference};
use super::report::{
    CLOSE_ANGSTROM, DISTANCE_QUANTILES, RowGeometry, SkeletonComparison, SkeletonFigure, SkeletonRow,
    SkeletonVerdict,
};
use crate::parameter;
use crate::stats::bootstrap::{Mean, quantile};
use crate::stats::interval::paired;
use drift_core::skeleton::FaultKind;
use drift_core::{Error, Result};

/// Returns the rows of verdicts, in the order in which they first occur.
pub(super) fn rows(verdicts: &[SkeletonVerdict]) -> Vec<SkeletonRow> {
    let mut rows: Vec<SkeletonRow> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut of_rows: Vec<Vec<&SkeletonVerdict>> = Vec::new();
    for verdict in verdicts {
        let place = *places.entry(&verdict.row).or_insert_with(|| {
            rows.push(SkeletonRow { row: verdict.row.clone(), ..SkeletonRow::default() });
            of_rows.push(Vec::new());
            rows.len() - 1
        });
        of_rows[place].push(verdict);
        let row = &mut rows[place];
        row.texts += 1;
        row.passed += u64::from(verdict.passed);
        row.texts_with_repeated_items += u64::from(verdict.repeated_items > 0);
        row.repeated_texts += u64::from(verdict.repeats_text);
        for kind in verdict.counts.keys() {
            *row.faults.entry(*kind).or_default() += 1;
        }
    }
    for (row, verdicts) in rows.iter_mut().zip(of_rows) {
        row.geometry = geometry(&verdicts);
    }
    rows
}

fn geometry(verdicts: &[&SkeletonVerdict]) -> Option<RowGeometry> {
    let of_texts: Vec<_> = verdicts.iter().filter_map(|verdict| verdict.geometry).collect();
    let mut shortest: Vec<f64> = of_texts.iter().filter_map(|text| text.shortest_distance_angstrom).collect();
    let volumes: Vec<f64> =
        of_texts.iter().filter_map(|text| Some(text.volume? / text.atoms as f64)).collect();
    let with_cell = of_texts.iter().filter(|text| text.has_cell).count();
    shortest.sort_by(f64::total_cmp);
    (!of_texts.is_empty()).then(|| RowGeometry {
        texts: of_texts.len() as u64,
        without_volume: (with_cell - volumes.len()) as u64,
        close: shortest.iter().filter(|distance| **distance < CLOSE_ANGSTROM).count() as u64,
        distances: shortest.len() as u64,
        shortest_quantiles_angstrom: quantiles(&shortest),
        median_shortest_angstrom: median(shortest),
        median_volume_per_atom: median(volumes),
    })
}

/// Returns the [`DISTANCE_QUANTILES`] of sorted values.
fn quantiles(sorted: &[f64]) -> Option<[f64; 7]> {
    (!sorted.is_empty()).then(|| DISTANCE_QUANTILES.map(|share| quantile(sorted, share)))
}

/// Returns the median of values, which is their quantile of 50 %.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| quantile(&values, 0.5))
}

/// Returns the row that a user means.
pub(super) fn base(rows: &[SkeletonRow], name: &str) -> Result<usize> {
    rows.iter().position(|row| row.row == name || row.row.split('.').next() == Some(name)).ok_or_else(|| {
        let names: Vec<&str> = rows.iter().map(|row| row.row.as_str()).take(8).collect();
        let problem = format!("no row is called `{name}`");
        Error::parameter(parameter::AGAINST_ROW, problem, format!("give one of {}", names.join(", ")))
    })
}

/// A text of the base row and one of another row, for the same prompt and generation.
#[derive(Clone, Copy)]
struct Pair<'v> {
    before: &'v SkeletonVerdict,
    after: &'v SkeletonVerdict,
    is_same: bool,
}

/// Returns the other rows compared with the base row. `texts` are those of the verdicts.
pub(super) fn comparisons(
    verdicts: &[SkeletonVerdict],
    texts: &[&str],
    rows: &[SkeletonRow],
    base: usize,
) -> Vec<SkeletonComparison> {
    let mut by_key: HashMap<(&str, usize, usize), usize> = HashMap::new();
    for (at, verdict) in verdicts.iter().enumerate() {
        by_key.insert((&verdict.row, verdict.prompt, verdict.generation), at);
    }
    let base_name = rows[base].row.as_str();
    let others = rows.iter().filter(|row| row.row != base_name);
    let mut all = Vec::new();
    for row in others {
        let mut pairs: Vec<Pair<'_>> = Vec::new();
        for (at, before) in verdicts.iter().enumerate().filter(|(_, verdict)| verdict.row == base_name) {
            if let Some(&other) = by_key.get(&(row.row.as_str(), before.prompt, before.generation)) {
                pairs.push(Pair { before, after: &verdicts[other], is_same: texts[at] == texts[other] });
            }
        }
        pairs.sort_by_key(|pair| pair.before.prompt);
        all.push(comparison(row, rows[base].texts, &pairs, level(rows.len() - 1)));
    }
    all
}

fn comparison(row: &SkeletonRow, base_texts: u64, pairs: &[Pair<'_>], level: f64) -> SkeletonComparison {
    let kinds: BTreeSet<FaultKind> = pairs
        .iter()
        .flat_map(|pair| pair.before.counts.keys().chain(pair.after.counts.keys()))
        .copied()
        .collect();
    let kinds = kinds.into_iter().map(Shown::Fault);
    let figures = std::iter::once(Shown::Passed).chain(kinds).chain([Shown::Close]);
    let passed = || pairs.iter().filter(|pair| pair.before.passed);
    SkeletonComparison {
        row: row.row.clone(),
        pairs: pairs.len() as u64,
        unpaired: row.texts + base_texts - 2 * pairs.len() as u64,
        identical: passed().filter(|pair| pair.is_same).count() as u64,
        passed_without: passed().count() as u64,
        figures: figures.filter_map(|shown| figure(shown, pairs, level)).collect(),
        shortest_difference_angstrom: shortest_difference(pairs, true, level),
        all_shortest_difference_angstrom: shortest_difference(pairs, false, level),
    }
}

/// What a share of texts shows.
#[derive(Clone, Copy)]
enum Shown {
    Passed,
    Fault(FaultKind),
    /// A distance below [`CLOSE_ANGSTROM`].
    Close,
}

impl Shown {
    fn name(self) -> &'static str {
        match self {
            Shown::Passed => "passed",
            Shown::Fault(kind) => kind.name(),
            Shown::Close => "close",
        }
    }

    /// Returns whether a text shows it; `None` if it has no distance to compare.
    fn of(self, verdict: &SkeletonVerdict) -> Option<bool> {
        match self {
            Shown::Passed => Some(verdict.passed),
            Shown::Fault(kind) => Some(verdict.counts.contains_key(&kind)),
            Shown::Close => verdict.shortest().map(|distance| distance < CLOSE_ANGSTROM),
        }
    }
}

impl SkeletonVerdict {
    fn shortest(&self) -> Option<f64> {
        self.geometry?.shortest_distance_angstrom
    }
}

/// Returns the shares of texts that show something, with prompts as clusters.
fn figure(shown: Shown, pairs: &[Pair<'_>], level: f64) -> Option<SkeletonFigure> {
    let mut clusters: Vec<Cluster> = Vec::new();
    for pairs in pairs.chunk_by(|a, b| a.before.prompt == b.before.prompt) {
        let mut cluster = Cluster::default();
        for pair in pairs {
            if let (Some(before), Some(after)) = (shown.of(pair.before), shown.of(pair.after)) {
                cluster.before.merge(&Share { count: u64::from(before), of: 1 });
                cluster.after.merge(&Share { count: u64::from(after), of: 1 });
            }
        }
        if cluster.before.of > 0 {
            clusters.push(cluster);
        }
    }
    let RatioDifference { without, with, difference, interval } = ratio_difference(&clusters, level)?;
    Some(SkeletonFigure { figure: shown.name().to_owned(), without, with, difference, interval })
}

/// Returns the difference of the shortest distances over prompts: of texts that pass in both rows, or of all.
fn shortest_difference(pairs: &[Pair<'_>], passed: bool, level: f64) -> Option<Mean> {
    let mut by_prompt: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| !passed || pair.before.passed && pair.after.passed) {
        if let (Some(before), Some(after)) = (pair.before.shortest(), pair.after.shortest()) {
            by_prompt.entry(pair.before.prompt).or_default().push(after - before);
        }
    }
    let means: Vec<f64> =
        by_prompt.values().map(|values| values.iter().sum::<f64>() / values.len() as f64).collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let interval = paired(&means, level).map(|found| found.interval);
    (!means.is_empty()).then_some(Mean { items: means.len(), mean, interval })
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_ones() {
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}
