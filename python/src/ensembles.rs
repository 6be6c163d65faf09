//! The measures of all texts of a molecule together, as NumPy arrays and as reports.

use drift::audit::ensemble::{
    EnsembleMeasures, ExpectedHits, MoleculeClusters, MoleculeHits, ThresholdOccupancy,
};
use drift::audit::{BatchScores, EnsembleScore, MissingPolicy, MoleculeEnsemble};
use drift::error::Error;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

/// The name of an array, and the function that gives its value.
type Figure<S, T> = (&'static str, fn(&S) -> T);

/// Adds the arrays of ensembles, `[groups]`, `[groups, K]`, `[groups, K, thresholds]` or `[groups, thresholds]`. A figure that was not
/// asked for, or cannot be computed, is NaN or -1.
pub(crate) fn put(
    out: &Bound<'_, PyDict>,
    scores: &BatchScores,
    measures: &EnsembleMeasures,
) -> PyResult<()> {
    let py = out.py();
    let groups: Vec<&EnsembleScore> = scores.groups.iter().map(|group| &group.ensemble).collect();
    let sizes: [Figure<EnsembleScore, Option<i64>>; 2] = [
        ("group_heavy_atoms", |score| score.size?.heavy_atoms.try_into().ok()),
        ("group_rotatable_bonds", |score| score.size?.rotatable_bonds.try_into().ok()),
    ];
    for (name, of) in sizes {
        let counts: Vec<i64> = groups.iter().map(|score| of(score).unwrap_or(-1)).collect();
        out.set_item(name, PyArray1::from_vec(py, counts))?;
    }
    put_hits(out, &groups, measures)?;
    put_clusters(out, scores, &groups, measures)?;
    let within: Vec<usize> = scores.within_texts.iter().map(|all| all.len().isqrt()).collect();
    out.set_item("within_lengths", within)?;
    out.set_item("within_flat", PyArray1::from_vec(py, scores.within_texts.concat()))?;
    let kept = if measures.is_empty() { Vec::new() } else { groups };
    out.set_item("ensembles", json(&kept)?)
}

fn put_hits(out: &Bound<'_, PyDict>, groups: &[&EnsembleScore], measures: &EnsembleMeasures) -> PyResult<()> {
    let py = out.py();
    let thresholds = &measures.hits;
    let draws = if thresholds.is_empty() { &[][..] } else { &measures.draws };
    out.set_item("draws", PyArray1::from_vec(py, draws.iter().map(|k| *k as i64).collect()))?;
    out.set_item("hit_thresholds", PyArray1::from_slice(py, thresholds))?;
    let figures: [Figure<ExpectedHits, Option<f64>>; 3] = [
        ("group_hits", |one| Some(one.hit)),
        ("group_references_hit", |one| Some(one.references_hit)),
        ("group_hits_of_conformers", |one| one.hit_of_conformers),
    ];
    for (name, of) in figures {
        let hit = |hits: Option<&MoleculeHits>, k: usize, threshold: usize| {
            of(hits?.best_of.get(k)?.thresholds.get(threshold)?)
        };
        let mut flat = Vec::with_capacity(groups.len() * draws.len() * thresholds.len());
        for score in groups {
            for k in 0..draws.len() {
                flat.extend(
                    (0..thresholds.len()).map(|at| hit(score.hits.as_ref(), k, at).unwrap_or(f64::NAN)),
                );
            }
        }
        let shape = [groups.len(), draws.len(), thresholds.len()];
        out.set_item(name, PyArray1::from_vec(py, flat).reshape(shape)?)?;
    }
    let best = |score: &EnsembleScore, k: usize| score.hits.as_ref()?.best_of.get(k)?.rmsd_angstrom;
    let flat =
        groups.iter().flat_map(|score| (0..draws.len()).map(move |k| best(score, k).unwrap_or(f64::NAN)));
    let flat = PyArray1::from_vec(py, flat.collect());
    out.set_item("group_best_rmsd", flat.reshape([groups.len(), draws.len()])?)
}

fn put_clusters(
    out: &Bound<'_, PyDict>,
    scores: &BatchScores,
    groups: &[&EnsembleScore],
    measures: &EnsembleMeasures,
) -> PyResult<()> {
    let py = out.py();
    let thresholds = measures.clusters.len();
    out.set_item("cluster_thresholds", PyArray1::from_slice(py, &measures.clusters))?;
    let mut assigned = Vec::with_capacity(scores.conformers.len() * thresholds);
    for one in &scores.conformers {
        assigned.extend((0..thresholds).map(|at| one.clusters.get(at).map_or(-1, |cluster| *cluster as i64)));
    }
    let shape = [scores.conformers.len(), thresholds];
    out.set_item("clusters", PyArray1::from_vec(py, assigned).reshape(shape)?)?;
    let at = |score: &EnsembleScore, at: usize| score.clusters.as_ref()?.thresholds.get(at).copied();
    let all = || groups.iter().flat_map(|score| (0..thresholds).map(move |threshold| at(score, threshold)));
    let counts: [Figure<ThresholdOccupancy, u64>; 2] =
        [("group_clusters", |one| one.clusters), ("group_singletons", |one| one.singletons)];
    for (name, of) in counts {
        let flat = all().map(|one| one.map_or(0, |one| of(&one) as i64)).collect();
        out.set_item(name, PyArray1::from_vec(py, flat).reshape([groups.len(), thresholds])?)?;
    }
    let figures: [Figure<ThresholdOccupancy, f64>; 3] = [
        ("group_entropy", |one| one.entropy_nats),
        ("group_effective_clusters", ThresholdOccupancy::effective),
        ("group_evenness", ThresholdOccupancy::evenness),
    ];
    for (name, of) in figures {
        let flat = all().map(|one| one.map_or(f64::NAN, |one| of(&one))).collect();
        out.set_item(name, PyArray1::from_vec(py, flat).reshape([groups.len(), thresholds])?)?;
    }
    let spread = |clusters: &MoleculeClusters| clusters.torsion_spread_degrees;
    let spreads = groups.iter().map(|score| score.clusters.as_ref().and_then(spread).unwrap_or(f64::NAN));
    out.set_item("group_torsion_spread", PyArray1::from_vec(py, spreads.collect()))
}

/// Hit@K over molecules, as JSON. `ensembles` is what [`put`] wrote for the molecules of `smiles`.
pub(crate) fn hit_report(
    judge: &drift::Judge,
    smiles: &[String],
    ensembles: &str,
    missing: MissingPolicy,
) -> drift::Result<String> {
    let scores = read(smiles, ensembles)?;
    Ok(text(&judge.hit_report(&molecules(smiles, &scores), missing)?))
}

/// Clusters over molecules, as JSON.
pub(crate) fn cluster_report(
    judge: &drift::Judge,
    smiles: &[String],
    ensembles: &str,
) -> drift::Result<String> {
    let scores = read(smiles, ensembles)?;
    Ok(text(&judge.cluster_report(&molecules(smiles, &scores))?))
}

fn molecules<'s>(smiles: &'s [String], scores: &'s [EnsembleScore]) -> Vec<MoleculeEnsemble<'s>> {
    smiles.iter().zip(scores).map(|(smiles, score)| MoleculeEnsemble { smiles, score }).collect()
}

fn read(smiles: &[String], ensembles: &str) -> drift::Result<Vec<EnsembleScore>> {
    let read: Result<Vec<EnsembleScore>, _> = serde_json::from_str(ensembles);
    let scores = read.map_err(|e| Error::input("scores", e, "give the scores of a judge"))?;
    if scores.len() != smiles.len() {
        let problem = "are of a judge that measures neither hits nor clusters";
        return Err(Error::input("scores", problem, "give hits or clusters to Judge"));
    }
    Ok(scores)
}

/// Returns a report as JSON. Reports have only numbers and texts, which can always be written.
fn text(report: &impl Serialize) -> String {
    serde_json::to_string(report).unwrap_or_default()
}

fn json(scores: &[&EnsembleScore]) -> PyResult<String> {
    serde_json::to_string(scores).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
}
