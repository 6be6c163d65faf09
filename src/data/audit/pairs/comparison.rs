//! Compares rows with one of them, on the same molecules and generations.

use super::super::coverage::Deviations;
use super::super::outcome::Outcome;
use super::super::references::MoleculeGeometry;
use super::differences::{ComparedFigure, FigureDifference, PairedComparison, RescuedTexts};
use super::row::{ComparedRow, PairedText};
use super::shares::{Cluster, RatioDifference, Share, ratio_difference, unanimous};
use super::speed::ratio;
use crate::stats::bootstrap::Mean;
use crate::stats::interval::{Interval, LEVEL, paired};

/// Returns the level of intervals that hold for `rows` rows simultaneously: C. E. Bonferroni, 1936.
pub fn level(rows: usize) -> f64 {
    1.0 - (1.0 - LEVEL) / rows.max(1) as f64
}

/// A text of the base row, and the text of the compared row for the same molecule and generation.
#[derive(Clone, Copy)]
struct Pair<'r> {
    before: &'r PairedText<'r>,
    after: &'r PairedText<'r>,
}

/// The deviations of the texts of a molecule that are usable in both rows.
struct CommonDeviations {
    before: Deviations,
    after: Deviations,
}

/// A figure of one molecule.
type Figure = fn(&MoleculeGeometry) -> Option<f64>;

/// Compares a row with the base row. `rows` rows are compared with it, for which intervals are corrected; `seed` is that of
/// bootstrap intervals.
pub fn comparison(base: &ComparedRow<'_>, row: &ComparedRow<'_>, rows: usize, seed: u64) -> PairedComparison {
    let pairs = pairs(base, row);
    let passed = |row: &ComparedRow<'_>| row.texts.iter().filter(|text| text.passed()).count() as i64;
    // Texts without a prompt that fail have no partner. In rows of equal numbers they count all the same.
    let passed_difference = if base.times.texts == row.times.texts {
        passed(row) - passed(base)
    } else {
        pairs.iter().map(|pair| i64::from(pair.after.passed()) - i64::from(pair.before.passed())).sum()
    };
    // A text with junk may change under any logit processor. Only well-formed texts can show that it changes nothing.
    let well_formed = pairs.iter().filter(|pair| pair.before.counts.is_well_formed);
    let identical = well_formed.clone().filter(|pair| pair.before.text == pair.after.text);
    let molecules = common_deviations(base, row, &pairs);
    let difference = |figure: Figure| -> Option<Mean> {
        let pairs = differences(&molecules, figure);
        Mean::from_values(&pairs.iter().map(|(a, b)| b - a).collect::<Vec<f64>>(), seed)
    };
    PairedComparison {
        row: row.label.clone(),
        unpaired: (base.texts.len() + row.texts.len() - 2 * pairs.len()) as u64,
        passed_difference,
        well_formed_without: well_formed.count() as u64,
        identical: identical.count() as u64,
        bond_error_difference_angstrom: difference(|m| m.bond_length_error_angstrom),
        mat_precision_difference_angstrom: difference(|m| m.coverage.mat_precision_angstrom),
        mat_recall_difference_angstrom: difference(|m| m.coverage.mat_recall_angstrom),
        speed_ratio: total_ratio(base, row),
        speed: ratio(&row.times, &base.times, level(rows)),
        rows,
        figures: shares(&pairs, level(rows)).into_iter().chain(lengths(&molecules, level(rows))).collect(),
        valid_against_automaton: None,
        rescued: rescued(&pairs, row, level(rows)),
    }
}

/// Returns the share of valid texts of a row beside that of another row; `None` if no text of either was checked. `rows` is as in
/// [`comparison`].
pub fn valid_difference(
    other: &ComparedRow<'_>,
    row: &ComparedRow<'_>,
    rows: usize,
) -> Option<FigureDifference> {
    difference_of_shares(ComparedFigure::Valid, &pairs(other, row), level(rows))
}

/// Returns the texts of both rows for the same prompt and generation. An interrupted row lacks some.
fn pairs<'r>(base: &'r ComparedRow<'r>, row: &'r ComparedRow<'r>) -> Vec<Pair<'r>> {
    let partner = |before: &'r PairedText<'r>| {
        let place = row.texts.binary_search_by_key(&before.key(), PairedText::key).ok()?;
        Some(Pair { before, after: &row.texts[place] })
    };
    base.texts.iter().filter_map(partner).collect()
}

/// For each molecule of both rows, the deviations of the texts that are usable in both.
fn common_deviations(
    base: &ComparedRow<'_>,
    row: &ComparedRow<'_>,
    pairs: &[Pair<'_>],
) -> Vec<CommonDeviations> {
    let of_molecule = |pairs: &[Pair<'_>]| {
        let molecule = pairs[0].before.molecule;
        let (before, after) = (base.deviations.get(&molecule)?, row.deviations.get(&molecule)?);
        let places = pairs.iter().filter_map(|pair| pair.before.conformer.zip(pair.after.conformer));
        let (own, others): (Vec<usize>, Vec<usize>) = places.unzip();
        Some(CommonDeviations { before: before.of(&own), after: after.of(&others) })
    };
    pairs.chunk_by(|a, b| a.before.molecule == b.before.molecule).filter_map(of_molecule).collect()
}

/// Returns a figure in the base row and in the other, for each molecule that has it in both.
fn differences(molecules: &[CommonDeviations], figure: Figure) -> Vec<(f64, f64)> {
    let of = |one: &Deviations| figure(&MoleculeGeometry::from_deviations(one)?);
    molecules.iter().filter_map(|both| Some((of(&both.before)?, of(&both.after)?))).collect()
}

/// Returns the share of a figure in one text; `None` if the text does not show it.
fn share(figure: ComparedFigure, text: &PairedText<'_>) -> Option<Share> {
    let counts = text.counts;
    let is = |outcome: Outcome| Some(Share { count: u64::from(counts.outcome == outcome), of: 1 });
    let of_blocks = |count: u64| Some(Share { count, of: counts.blocks });
    match figure {
        ComparedFigure::Passed => is(Outcome::Pass),
        // Of all texts: one that does not pass is not valid.
        ComparedFigure::Valid => Some(Share { count: u64::from(counts.valid == Some(true)), of: 1 }),
        ComparedFigure::GraphMismatch => is(Outcome::GraphMismatch),
        ComparedFigure::ParseFailures => is(Outcome::ParseFailure),
        ComparedFigure::NoEos => is(Outcome::NoEos),
        ComparedFigure::JunkBlocks => of_blocks(counts.junk),
        ComparedFigure::TruncatedBlocks => of_blocks(counts.truncated?),
        ComparedFigure::InventedBlocks => of_blocks(counts.invented),
        _ => None,
    }
}

/// Returns the differences of shares of texts and of blocks.
fn shares(pairs: &[Pair<'_>], level: f64) -> Vec<FigureDifference> {
    let figures = [
        ComparedFigure::Passed,
        ComparedFigure::Valid,
        ComparedFigure::GraphMismatch,
        ComparedFigure::ParseFailures,
        ComparedFigure::NoEos,
        ComparedFigure::JunkBlocks,
        ComparedFigure::TruncatedBlocks,
        ComparedFigure::InventedBlocks,
    ];
    figures.into_iter().filter_map(|figure| difference_of_shares(figure, pairs, level)).collect()
}

/// Returns the difference of a figure's shares; `None` if texts do not show it.
fn difference_of_shares(figure: ComparedFigure, pairs: &[Pair<'_>], level: f64) -> Option<FigureDifference> {
    let is_checked = |pair: &Pair<'_>| pair.before.counts.valid.or(pair.after.counts.valid).is_some();
    // A row is not without valid texts only because none could be checked.
    if figure == ComparedFigure::Valid && !pairs.iter().any(is_checked) {
        return None;
    }
    let molecules = pairs.chunk_by(|a, b| a.before.molecule == b.before.molecule);
    let clusters: Option<Vec<Cluster>> = molecules.map(|pairs| cluster(figure, pairs)).collect();
    share_difference(figure, &clusters?, level)
}

/// Returns the shares of a figure in the texts of a molecule; `None` if a text does not show it.
fn cluster(figure: ComparedFigure, pairs: &[Pair<'_>]) -> Option<Cluster> {
    let mut cluster = Cluster::default();
    for pair in pairs {
        cluster.before.merge(&share(figure, pair.before)?);
        cluster.after.merge(&share(figure, pair.after)?);
    }
    Some(cluster)
}

/// Returns the difference of a figure's shares on the same clusters.
fn share_difference(figure: ComparedFigure, clusters: &[Cluster], level: f64) -> Option<FigureDifference> {
    let RatioDifference { without, with, difference, interval } = ratio_difference(clusters, level)?;
    Some(FigureDifference { figure, without, with, difference, interval })
}

/// Returns the geometry over the texts that are usable in both rows.
fn lengths(molecules: &[CommonDeviations], level: f64) -> Vec<FigureDifference> {
    let figures: [(ComparedFigure, Figure); 5] = [
        (ComparedFigure::BondLengthError, |m| m.bond_length_error_angstrom),
        (ComparedFigure::MatPrecision, |m| m.coverage.mat_precision_angstrom),
        (ComparedFigure::MatRecall, |m| m.coverage.mat_recall_angstrom),
        (ComparedFigure::CovPrecision, |m| m.coverage.cov_precision),
        (ComparedFigure::CovRecall, |m| Some(m.coverage.cov_recall)),
    ];
    let of = |(figure, value): (ComparedFigure, Figure)| {
        let values = differences(molecules, value);
        let n = values.len() as f64;
        let differences: Vec<f64> = values.iter().map(|(a, b)| b - a).collect();
        (!values.is_empty()).then(|| FigureDifference {
            figure,
            without: values.iter().map(|(a, _)| a).sum::<f64>() / n,
            with: values.iter().map(|(_, b)| b).sum::<f64>() / n,
            difference: differences.iter().sum::<f64>() / n,
            interval: interval(figure, &differences, level),
        })
    };
    figures.into_iter().filter_map(of).collect()
}

/// Returns the interval of the mean of differences between molecules. Where all molecules differ by the same, they show no spread: the
/// interval of a share is then that of [`unanimous`], and a length has none.
fn interval(figure: ComparedFigure, differences: &[f64], level: f64) -> Option<Interval> {
    let spread = paired(differences, level)?.interval;
    let first = differences[0];
    if first.abs() <= 1e-12 || differences.iter().any(|difference| (difference - first).abs() > 1e-12) {
        return Some(spread);
    }
    (!figure.is_length()).then(|| unanimous(first, differences.len() as u64, level)).flatten()
}

/// Compares texts that pass only in the row with texts of the same molecule that pass in both rows. All geometry is from the row.
fn rescued(pairs: &[Pair<'_>], row: &ComparedRow<'_>, level: f64) -> Option<RescuedTexts> {
    let mut found = RescuedTexts::default();
    let (mut bonds, mut nearest) = (Vec::new(), Vec::new());
    for texts in pairs.chunk_by(|a, b| a.before.molecule == b.before.molecule) {
        let passing = || texts.iter().filter(|pair| pair.after.passed());
        found.texts += passing().filter(|pair| !pair.before.passed()).count() as u64;
        let Some(deviations) = row.deviations.get(&texts[0].before.molecule) else { continue };
        let places = |passed_before: bool| -> Vec<usize> {
            passing()
                .filter(|pair| pair.before.passed() == passed_before)
                .filter_map(|pair| pair.after.conformer)
                .collect()
        };
        let (new, kept) = (places(false), places(true));
        // A molecule needs both kinds of texts, or else harder molecules would be compared with easier ones.
        if new.is_empty() || kept.is_empty() {
            continue;
        }
        found.molecules_compared += 1;
        bonds.extend(mean_difference(&new, &kept, |at| deviations.bond_errors[at]));
        nearest.extend(mean_difference(&new, &kept, |at| deviations.nearest(at)));
    }
    found.bond_error_difference_angstrom = over_molecules(&bonds, level);
    found.nearest_difference_angstrom = over_molecules(&nearest, level);
    (found.texts > 0).then_some(found)
}

/// Returns the mean of a value over some conformers minus the mean over others; `None` if it is not known for any of them.
fn mean_difference(new: &[usize], kept: &[usize], value: impl Fn(usize) -> Option<f64>) -> Option<f64> {
    let mean = |places: &[usize]| {
        let known: Vec<f64> = places.iter().filter_map(|at| value(*at)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    Some(mean(new)? - mean(kept)?)
}

/// Returns the mean over molecules, with its interval.
fn over_molecules(values: &[f64], level: f64) -> Option<Mean> {
    let interval = paired(values, level).map(|found| found.interval);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (!values.is_empty()).then_some(Mean { items: values.len(), mean, interval })
}

/// Returns how many times as fast the whole row was as the base row, by CPU time if that is known for both; `None` if no time is known.
fn total_ratio(base: &ComparedRow<'_>, row: &ComparedRow<'_>) -> Option<f64> {
    match (row.texts_per_cpu_second, base.texts_per_cpu_second) {
        (Some(row), Some(base)) => Some(row / base),
        _ => Some(row.texts_per_second? / base.texts_per_second?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a molecule with `before` of 10 and `after` of 10.
    fn of_ten(before: u64, after: u64) -> Cluster {
        Cluster { before: Share { count: before, of: 10 }, after: Share { count: after, of: 10 } }
    }

    #[test]
    fn a_difference_of_shares_is_paired() {
        let of = |clusters: &[Cluster]| share_difference(ComparedFigure::JunkBlocks, clusters, 0.95).unwrap();
        // The same in every molecule: no spread, however unlike the molecules are.
        let same: Vec<Cluster> = (0..20).map(|i| of_ten(i % 5, i % 5)).collect();
        assert_eq!(of(&same).interval, Some(Interval { low: 0.0, high: 0.0 }));
        let worse: Vec<Cluster> = (0..20).map(|i| of_ten(i % 5, i % 5 + 2 + i % 2)).collect();
        let found = of(&worse);
        assert!((found.difference - 0.25).abs() < 1e-12 && (found.without - 0.2).abs() < 1e-12);
        let interval = found.interval.unwrap();
        // Half of the molecules have 0.2 more, half 0.3.
        let half = 2.093_024 * (0.05 * 0.05 * 20.0 / 19.0f64 / 20.0).sqrt();
        assert!((interval.high - 0.25 - half).abs() < 1e-6, "{interval:?}");
        assert!(share_difference(ComparedFigure::NoEos, &[], 0.95).is_none());
        assert!(of(&[of_ten(1, 2)]).interval.is_none());
    }

    #[test]
    fn more_rows_take_wider_intervals() {
        assert!((level(1) - 0.95).abs() < 1e-12 && (level(10) - 0.995).abs() < 1e-12);
    }

    #[test]
    fn molecules_that_all_differ_by_the_same_prove_little() {
        let of = |figure, differences: &[f64]| interval(figure, differences, LEVEL);
        let two = of(ComparedFigure::CovPrecision, &[-1.0, -1.0]).unwrap();
        assert!(two.contains(0.0) && two.contains(-1.0), "{two:?}");
        assert!(of(ComparedFigure::CovPrecision, &[-1.0; 9]).unwrap().high < 0.0);
        assert_eq!(of(ComparedFigure::MatPrecision, &[0.1, 0.1]), None);
        assert_eq!(of(ComparedFigure::MatPrecision, &[0.0, 0.0]), Some(Interval::around(0.0, 0.0)));
        let spread = of(ComparedFigure::MatPrecision, &[0.1, 0.3]);
        assert_eq!(spread, paired(&[0.1, 0.3], LEVEL).map(|found| found.interval));
        assert_eq!(of(ComparedFigure::CovRecall, &[-1.0]), None);
    }
}
