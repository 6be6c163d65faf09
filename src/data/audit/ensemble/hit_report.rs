//! Hit@K over molecules, and by class of molecules.

use serde::{Deserialize, Serialize};

use super::super::coverage::MeanMedian;
use super::hits::{BestOf, ExpectedHits, MoleculeHits};
use super::strata::{MoleculeSize, Stratum};

/// Hit@K over molecules: means of the figures of [`MoleculeHits`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HitReport {
    /// The number of molecules that count.
    pub molecules: u64,
    /// By number of texts K.
    pub at: Vec<HitsAt>,
    /// The classes that have molecules.
    pub strata: Vec<HitStratum>,
}

/// The hits of K texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HitsAt {
    /// K.
    pub k: u64,
    /// The number of molecules with at least K texts. Of the others all texts are taken.
    pub molecules_with_k_texts: u64,
    /// The expected least RMSD of K conformers, in Å, over molecules with a text to compare.
    pub best_rmsd_angstrom: Option<MeanMedian>,
    /// By threshold.
    pub thresholds: Vec<ThresholdHits>,
}

/// The hits of K texts at a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThresholdHits {
    /// The threshold, in Å.
    pub angstrom: f64,
    /// Hit@K: the share of molecules of which one of K texts is within the threshold of any reference.
    pub hit: MeanMedian,
    /// COV-R of K texts: the share of references with one of K texts within the threshold.
    pub references_hit: MeanMedian,
    /// Hit@K if only texts that are compared are drawn, over molecules with such a text.
    pub hit_of_conformers: Option<MeanMedian>,
}

/// The hits of a class of molecules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HitStratum {
    /// The class.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// The number of its molecules that count.
    pub molecules: u64,
    /// By number of texts K.
    pub at: Vec<HitsAt>,
}

/// A molecule of the report. One without a size belongs to no class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::audit) struct SizedHits {
    pub size: Option<MoleculeSize>,
    pub hits: MoleculeHits,
}

impl HitReport {
    /// Returns the report over molecules, in an order that the sums follow.
    pub(in crate::audit) fn from_molecules(molecules: &[SizedHits]) -> Self {
        let all: Vec<&MoleculeHits> = molecules.iter().map(|one| &one.hits).collect();
        let strata = Stratum::all().filter_map(|stratum| {
            let own = molecules.iter().filter(|one| one.size.is_some_and(|size| stratum.contains(size)));
            let own: Vec<&MoleculeHits> = own.map(|one| &one.hits).collect();
            let at = over(&own, MeanMedian::plain);
            (!own.is_empty()).then_some(HitStratum { stratum, molecules: own.len() as u64, at })
        });
        HitReport {
            molecules: molecules.len() as u64,
            at: over(&all, MeanMedian::from_values),
            strata: strata.collect(),
        }
    }
}

/// A summary of one value a molecule.
type Summary = fn(&[f64]) -> Option<MeanMedian>;

fn over(molecules: &[&MoleculeHits], summary: Summary) -> Vec<HitsAt> {
    let Some(first) = molecules.first() else { return Vec::new() };
    (0..first.best_of.len()).map(|at| hits_at(molecules, at, summary)).collect()
}

/// Returns the hits of the number of texts at an index. All molecules have the same numbers and thresholds.
fn hits_at(molecules: &[&MoleculeHits], at: usize, summary: Summary) -> HitsAt {
    let best: Vec<&BestOf> = molecules.iter().map(|one| &one.best_of[at]).collect();
    let k = best[0].k;
    let rmsds: Vec<f64> = best.iter().filter_map(|one| one.rmsd_angstrom).collect();
    let thresholds = (0..best[0].thresholds.len()).filter_map(|threshold| {
        let hits: Vec<ExpectedHits> = best.iter().map(|one| one.thresholds[threshold]).collect();
        ThresholdHits::over(&hits, summary)
    });
    HitsAt {
        k,
        molecules_with_k_texts: molecules.iter().filter(|one| one.texts >= k).count() as u64,
        best_rmsd_angstrom: summary(&rmsds),
        thresholds: thresholds.collect(),
    }
}

impl ThresholdHits {
    /// `None` without molecules.
    fn over(hits: &[ExpectedHits], summary: Summary) -> Option<Self> {
        let of_conformers: Vec<f64> = hits.iter().filter_map(|one| one.hit_of_conformers).collect();
        Some(ThresholdHits {
            angstrom: hits.first()?.angstrom,
            hit: summary(&hits.iter().map(|one| one.hit).collect::<Vec<f64>>())?,
            references_hit: summary(&hits.iter().map(|one| one.references_hit).collect::<Vec<f64>>())?,
            hit_of_conformers: summary(&of_conformers),
        })
    }
}
