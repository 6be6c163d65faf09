//! Compares each logit processor with none, on the same molecules and random numbers.

use super::checkpoint::Checkpoint;
use super::judged::Judged;
use super::measured::MeasuredMolecule;
use super::record::{ComparedFigure, FigureDifference, PairedComparison, Rescued};
use super::run::Run;
use super::speed::ratio;
use drift_core::constraint::ProcessorKind;
use drift_data::audit::MoleculeGeometry;
use drift_data::audit::coverage::Deviations;
use drift_data::stats::bootstrap::Mean;
use drift_data::stats::interval::{Interval, LEVEL, paired, student_quantile};

/// The level of intervals that hold for `rows` rows simultaneously: C. E. Bonferroni, 1936.
pub(super) fn level(rows: usize) -> f64 {
    1.0 - (1.0 - LEVEL) / rows.max(1) as f64
}

/// A run, with the geometry of its texts.
pub(super) type Measured<'r> = (&'r Run, &'r [MeasuredMolecule]);

/// The texts without and with the logit processor.
type Pair<'j> = (&'j Judged, &'j Judged);

/// A figure of one molecule.
type Figure = fn(&MoleculeGeometry) -> Option<f64>;

/// Compares each run of a model with its run without a logit processor; empty if there is no such run.
pub(super) fn compare(checkpoint: &Checkpoint, runs: &[Measured<'_>], seed: u64) -> Vec<PairedComparison> {
    let Some(without) = runs.iter().find(|(run, _)| run.processor == ProcessorKind::None) else {
        return Vec::new();
    };
    let others: Vec<&Measured<'_>> =
        runs.iter().filter(|(run, _)| run.processor != ProcessorKind::None).collect();
    let rows = others.len();
    others.iter().map(|run| comparison(checkpoint, *without, **run, rows, seed)).collect()
}

fn comparison(
    checkpoint: &Checkpoint,
    without: Measured<'_>,
    with: Measured<'_>,
    rows: usize,
    seed: u64,
) -> PairedComparison {
    let run = with.0;
    let passed = |run: &Run| run.judged.iter().filter(|judged| judged.passed()).count() as i64;
    let pairs: Vec<Pair<'_>> = pairs(without.0, run).collect();
    // A text with junk may change under any logit processor. Only well-formed texts can show that it changes nothing.
    let well_formed = pairs.iter().filter(|(before, _)| before.copied && before.marks.is_empty());
    let identical = well_formed.clone().filter(|(before, after)| before.text == after.text);
    let molecules = both_ways(without.1, with.1);
    let difference = |figure: Figure| -> Option<Mean> {
        let pairs = differences(&molecules, figure);
        Mean::from_values(&pairs.iter().map(|(a, b)| b - a).collect::<Vec<f64>>(), seed)
    };
    PairedComparison {
        model: checkpoint.name.clone(),
        lp: run.processor,
        placeholder: run.placeholder.clone(),
        passed_difference: passed(run) - passed(without.0),
        well_formed_without: well_formed.count() as u64,
        identical: identical.count() as u64,
        bond_error_difference_angstrom: difference(|m| m.bond_length_error_angstrom),
        mat_precision_difference_angstrom: difference(|m| m.coverage.mat_precision_angstrom),
        mat_recall_difference_angstrom: difference(|m| m.coverage.mat_recall_angstrom),
        speed_ratio: total_ratio(run, without.0),
        speed: ratio(&run.pace(), &without.0.pace(), level(rows)),
        rows,
        figures: shares(&pairs, level(rows)).into_iter().chain(lengths(&molecules, level(rows))).collect(),
        rescued: rescued(&pairs, with.1, level(rows)),
    }
}

/// The texts of both runs for the same molecule and generation. An interrupted run lacks some.
fn pairs<'r>(a: &'r Run, b: &'r Run) -> impl Iterator<Item = Pair<'r>> {
    let find = |judged: &Judged| {
        let key = (judged.subject, judged.generation);
        // The texts of a run are sorted by molecule and generation.
        let place = b.judged.binary_search_by_key(&key, |other| (other.subject, other.generation));
        place.ok().map(|place| &b.judged[place])
    };
    a.judged.iter().filter_map(move |judged| Some((judged, find(judged)?)))
}

/// For each molecule of both runs, the deviations of the texts that are usable in both, without and with the processor.
fn both_ways(without: &[MeasuredMolecule], with: &[MeasuredMolecule]) -> Vec<(Deviations, Deviations)> {
    let common = |before: &MeasuredMolecule| {
        let after = MeasuredMolecule::of_group(with, before.group)?;
        let places = before.texts.iter().enumerate();
        let (a, b): (Vec<usize>, Vec<usize>) =
            places.filter_map(|(at, text)| Some((at, after.place_of(*text)?))).unzip();
        Some((before.deviations.of(&a), after.deviations.of(&b)))
    };
    without.iter().filter_map(common).collect()
}

/// A figure without and with the processor, for each molecule that has it in both runs.
fn differences(molecules: &[(Deviations, Deviations)], figure: Figure) -> Vec<(f64, f64)> {
    let of = |one: &Deviations| figure(&MoleculeGeometry::from_deviations(one)?);
    molecules.iter().filter_map(|(before, after)| Some((of(before)?, of(after)?))).collect()
}

/// A count for one text or its blocks: how many have a property, of how many.
type Count = fn(&Judged) -> (u64, u64);

/// The differences of shares of texts and of blocks.
fn shares(pairs: &[Pair<'_>], level: f64) -> Vec<FigureDifference> {
    use drift_data::audit::Outcome;
    const fn blocks(judged: &Judged) -> u64 {
        judged.verdict.blocks.len() as u64
    }
    let counts: [(ComparedFigure, Count); 7] = [
        (ComparedFigure::Passed, |text| (u64::from(text.verdict.outcome == Outcome::Pass), 1)),
        (ComparedFigure::GraphMismatch, |text| {
            (u64::from(text.verdict.outcome == Outcome::GraphMismatch), 1)
        }),
        (ComparedFigure::ParseFailures, |text| (u64::from(text.verdict.outcome == Outcome::ParseFailure), 1)),
        (ComparedFigure::NoEos, |text| (u64::from(text.verdict.outcome == Outcome::NoEos), 1)),
        (ComparedFigure::JunkBlocks, |text| {
            (text.verdict.blocks.iter().filter(|block| block.junk_strict).count() as u64, blocks(text))
        }),
        (ComparedFigure::TruncatedBlocks, |text| {
            let cut = text.verdict.blocks.iter().filter(|block| block.truncated == Some(true));
            (cut.count() as u64, blocks(text))
        }),
        (ComparedFigure::InventedBlocks, |text| {
            (text.verdict.blocks.iter().filter(|block| block.invented).count() as u64, blocks(text))
        }),
    ];
    let of = |(figure, count): (ComparedFigure, Count)| {
        let clusters = pairs.chunk_by(|a, b| a.0.group == b.0.group).map(|texts| {
            let sum = |of: &dyn Fn(&Pair<'_>) -> (u64, u64)| {
                texts.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            };
            (sum(&|pair| count(pair.0)), sum(&|pair| count(pair.1)))
        });
        share_difference(figure, &clusters.collect::<Vec<_>>(), level)
    };
    counts.into_iter().filter_map(of).collect()
}

/// The counts of a molecule without and with the processor, each as how many of how many.
type Cluster = ((u64, u64), (u64, u64));

/// The difference of two ratios on the same clusters, with the interval of its linear approximation (W. G. Cochran, Sampling
/// Techniques, 3rd ed., section 6.5).
fn share_difference(figure: ComparedFigure, clusters: &[Cluster], level: f64) -> Option<FigureDifference> {
    let sum = |of: fn(&Cluster) -> u64| clusters.iter().map(of).sum::<u64>() as f64;
    let (y0, n0, y1, n1) = (sum(|c| c.0.0), sum(|c| c.0.1), sum(|c| c.1.0), sum(|c| c.1.1));
    // A share of nothing is undefined, not 0.
    if n0 == 0.0 || n1 == 0.0 {
        return None;
    }
    let (without, with, m) = (y0 / n0, y1 / n1, clusters.len() as f64);
    // The first-order contribution of a molecule to the difference of the two ratios. The spread of the contributions gives that of
    // the difference.
    let residual = |((y0, n0), (y1, n1)): &Cluster, total0: f64, total1: f64| {
        (*y1 as f64 - with * *n1 as f64) * m / total1 - (*y0 as f64 - without * *n0 as f64) * m / total0
    };
    let squares: f64 = clusters.iter().map(|cluster| residual(cluster, n0, n1).powi(2)).sum();
    let difference = with - without;
    // A single molecule has no spread, so there is no quantile and no interval.
    let interval = student_quantile(level, (clusters.len() as u64).saturating_sub(1))
        .map(|quantile| Interval::around(difference, quantile * (squares / (m - 1.0) / m).sqrt()));
    Some(FigureDifference { figure, without, with, difference, interval })
}

/// The geometry over the texts that are usable in both runs.
fn lengths(molecules: &[(Deviations, Deviations)], level: f64) -> Vec<FigureDifference> {
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
            interval: paired(&differences, level).map(|found| found.interval),
        })
    };
    figures.into_iter().filter_map(of).collect()
}

/// Compares texts that pass only with the logit processor with texts of the same molecule that pass in both runs. All geometry is
/// from the run with the processor.
fn rescued(pairs: &[Pair<'_>], with: &[MeasuredMolecule], level: f64) -> Option<Rescued> {
    let mut found = Rescued::default();
    let (mut bonds, mut nearest) = (Vec::new(), Vec::new());
    for texts in pairs.chunk_by(|a, b| a.0.group == b.0.group) {
        let is_rescued = |pair: &&Pair<'_>| !pair.0.passed() && pair.1.passed();
        let is_kept = |pair: &&Pair<'_>| pair.0.passed() && pair.1.passed();
        found.texts += texts.iter().filter(is_rescued).count() as u64;
        let Some(molecule) = MeasuredMolecule::of_group(with, texts[0].0.group) else { continue };
        let places = |pairs: Vec<&Pair<'_>>| -> Vec<usize> {
            pairs.into_iter().filter_map(|pair| molecule.place(pair.1)).collect()
        };
        let new = places(texts.iter().filter(is_rescued).collect());
        let kept = places(texts.iter().filter(is_kept).collect());
        // A molecule needs both kinds of texts, or else harder molecules would be compared with easier ones.
        if new.is_empty() || kept.is_empty() {
            continue;
        }
        found.molecules_compared += 1;
        let mean = |places: &[usize], of: &dyn Fn(usize) -> Option<f64>| {
            let known: Vec<f64> = places.iter().filter_map(|at| of(*at)).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        let difference = |of: &dyn Fn(usize) -> Option<f64>| Some(mean(&new, of)? - mean(&kept, of)?);
        bonds.extend(difference(&|at| molecule.deviations.bond_errors[at]));
        nearest.extend(difference(&|at| molecule.deviations.nearest(at)));
    }
    let over_molecules = |values: &[f64]| {
        let interval = paired(values, level).map(|found| found.interval);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (!values.is_empty()).then_some(Mean { items: values.len(), mean, interval })
    };
    found.bond_error_difference_angstrom = over_molecules(&bonds);
    found.nearest_difference_angstrom = over_molecules(&nearest);
    (found.texts > 0).then_some(found)
}

/// How many times as fast the whole run was.
fn total_ratio(run: &Run, without: &Run) -> f64 {
    let per_cpu_second =
        |run: &Run| Some(run.judged.len() as f64 / run.cpu_seconds.filter(|cpu| *cpu > 0.0)?);
    match (per_cpu_second(run), per_cpu_second(without)) {
        (Some(run), Some(without)) => run / without,
        _ => run.conformers_per_second() / without.conformers_per_second(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_shares_is_paired() {
        let of = |clusters: &[Cluster]| share_difference(ComparedFigure::JunkBlocks, clusters, 0.95).unwrap();
        // The same in every molecule: no spread, however unlike the molecules are.
        let same: Vec<Cluster> = (0..20).map(|i| ((i % 5, 10), (i % 5, 10))).collect();
        assert_eq!(of(&same).interval, Some(Interval { low: 0.0, high: 0.0 }));
        let worse: Vec<Cluster> = (0..20).map(|i| ((i % 5, 10), (i % 5 + 2 + i % 2, 10))).collect();
        let found = of(&worse);
        assert!((found.difference - 0.25).abs() < 1e-12 && (found.without - 0.2).abs() < 1e-12);
        let interval = found.interval.unwrap();
        // Half of the molecules have 0.2 more, half 0.3.
        let half = 2.093_024 * (0.05 * 0.05 * 20.0 / 19.0f64 / 20.0).sqrt();
        assert!((interval.high - 0.25 - half).abs() < 1e-6, "{interval:?}");
        assert!(share_difference(ComparedFigure::NoEos, &[], 0.95).is_none());
        assert!(of(&[((1, 2), (2, 2))]).interval.is_none());
    }

    #[test]
    fn more_rows_take_wider_intervals() {
        assert!((level(1) - 0.95).abs() < 1e-12 && (level(10) - 0.995).abs() < 1e-12);
    }
}
