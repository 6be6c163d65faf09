//! Each logit processor against none, on the same molecules and random numbers.

use rayon::prelude::*;

use super::checkpoint::Checkpoint;
use super::judged::{Judged, by_molecule};
use super::record::PairedComparison;
use super::run::Run;
use super::subject::Subject;
use crate::audit::MoleculeGeometry;
use crate::constraint::LpKind;
use crate::stats::bootstrap::Mean;

/// Sets each run of a model against its run without logit processor; nothing if there is none.
pub(super) fn compare(
    checkpoint: &Checkpoint,
    subjects: &[Subject],
    runs: &[Run],
    seed: u64,
) -> Vec<PairedComparison> {
    let Some(without) = runs.iter().find(|run| run.processor == LpKind::None) else { return Vec::new() };
    let others = runs.iter().filter(|run| run.processor != LpKind::None);
    others.map(|run| comparison(checkpoint, subjects, without, run, seed)).collect()
}

fn comparison(
    checkpoint: &Checkpoint,
    subjects: &[Subject],
    without: &Run,
    run: &Run,
    seed: u64,
) -> PairedComparison {
    let passed = |run: &Run| run.judged.iter().filter(|judged| judged.passed()).count() as i64;
    let pairs: Vec<(&Judged, &Judged)> = pairs(without, run).collect();
    let well_formed = pairs.iter().filter(|(before, _)| before.copied && before.marks.is_empty());
    let identical = well_formed.clone().filter(|(before, after)| before.text == after.text);
    // Molecules count as far as the same texts are usable both ways.
    let usable: Vec<(&Judged, &Judged)> = pairs
        .iter()
        .copied()
        .filter(|(before, after)| before.points.is_some() && after.points.is_some())
        .collect();
    let before: Vec<&Judged> = usable.iter().map(|(before, _)| *before).collect();
    let after: Vec<&Judged> = usable.iter().map(|(_, after)| *after).collect();
    let (before, after) = (figures(subjects, &before), figures(subjects, &after));
    let difference = |figure: fn(&MoleculeGeometry) -> Option<f64>| -> Option<Mean> {
        let both = before.iter().zip(&after);
        let both = both.filter_map(|(a, b)| Some(figure(b.as_ref()?)? - figure(a.as_ref()?)?));
        Mean::of(&both.collect::<Vec<f64>>(), seed)
    };
    PairedComparison {
        model: checkpoint.name.clone(),
        lp: run.processor,
        placeholder: run.placeholder.clone(),
        passed_difference: passed(run) - passed(without),
        well_formed_without: well_formed.count() as u64,
        identical: identical.count() as u64,
        bond_error_difference_angstrom: difference(|m| m.bond_length_error_angstrom),
        mat_precision_difference_angstrom: difference(|m| m.coverage.mat_precision_angstrom),
        mat_recall_difference_angstrom: difference(|m| m.coverage.mat_recall_angstrom),
        speed_ratio: speed_ratio(run, without),
    }
}

/// The geometry of each molecule; none where there is no reference.
fn figures(subjects: &[Subject], judged: &[&Judged]) -> Vec<Option<MoleculeGeometry>> {
    let molecules = by_molecule(subjects, judged);
    molecules.par_iter().map(|(reference, generated)| reference.compare(generated)).collect()
}

/// Texts of both runs for the same molecule and generation; an interrupted run lacks some.
fn pairs<'r>(a: &'r Run, b: &'r Run) -> impl Iterator<Item = (&'r Judged, &'r Judged)> {
    let find = |judged: &Judged| {
        let key = (judged.subject, judged.generation);
        let place = b.judged.binary_search_by_key(&key, |other| (other.subject, other.generation));
        place.ok().map(|place| &b.judged[place])
    };
    a.judged.iter().filter_map(move |judged| Some((judged, find(judged)?)))
}

/// How many times as fast `run` was.
fn speed_ratio(run: &Run, without: &Run) -> f64 {
    let per_cpu_second =
        |run: &Run| Some(run.judged.len() as f64 / run.cpu_seconds.filter(|cpu| *cpu > 0.0)?);
    match (per_cpu_second(run), per_cpu_second(without)) {
        (Some(run), Some(without)) => run / without,
        _ => run.conformers_per_second() / without.conformers_per_second(),
    }
}
