//! Clusters and torsions over molecules, and by class of molecules.

use serde::{Deserialize, Serialize};

use super::super::coverage::MeanMedian;
use super::clusters::{MoleculeClusters, ThresholdOccupancy};
use super::strata::{MoleculeSize, Stratum};

/// Clusters over molecules that have a conformer: means of the figures of [`MoleculeClusters`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterReport {
    /// The figures of all molecules.
    #[serde(flatten)]
    pub figures: ClusterFigures,
    /// How many RMSDs, over all pairs that were compared, are upper bounds because the search was cut off by too much symmetry.
    pub rmsd_upper_bounds: u64,
    /// The classes that have molecules.
    pub strata: Vec<ClusterStratum>,
}

/// The figures of molecules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterFigures {
    /// The number of molecules that have a conformer.
    pub molecules: u64,
    /// The number of their texts, those that do not pass included.
    pub texts: u64,
    /// The number of their conformers.
    pub conformers: u64,
    /// The mean angular deviation of torsions, in degrees, over molecules that have torsions.
    pub torsion_spread_degrees: Option<MeanMedian>,
    /// By threshold.
    pub thresholds: Vec<ThresholdClusters>,
}

/// The clusters at a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThresholdClusters {
    /// The threshold, in Å.
    pub angstrom: f64,
    /// The number of clusters of all molecules.
    pub total: u64,
    /// The number of clusters of a molecule.
    pub clusters: MeanMedian,
    /// The number of clusters for 100 conformers.
    pub per_100_conformers: MeanMedian,
    /// The number of clusters for 100 texts, those that do not pass included.
    pub per_100_texts: MeanMedian,
    /// The Shannon entropy of the shares of conformers in clusters, in nats.
    pub entropy_nats: MeanMedian,
    /// The entropy divided by that of clusters of equal size.
    pub evenness: MeanMedian,
    /// The effective number of clusters: the exponential of the entropy.
    pub effective: MeanMedian,
    /// The share of conformers in the largest cluster.
    pub largest_share: MeanMedian,
    /// The sum of the squares of the shares.
    pub simpson: MeanMedian,
    /// The share of clusters with one conformer.
    pub singleton_share: MeanMedian,
}

/// The clusters of a class of molecules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterStratum {
    /// The class.
    #[serde(flatten)]
    pub stratum: Stratum,
    /// The figures of its molecules.
    #[serde(flatten)]
    pub figures: ClusterFigures,
}

/// A molecule of the report. One without a size belongs to no class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::audit) struct SizedClusters {
    pub size: Option<MoleculeSize>,
    pub clusters: MoleculeClusters,
}

impl ClusterReport {
    /// Returns the report over molecules with conformers, in an order that the sums follow.
    pub(in crate::audit) fn from_molecules(molecules: &[SizedClusters]) -> Self {
        let with_conformers = molecules.iter().filter(|one| one.clusters.conformers > 0);
        let molecules: Vec<&SizedClusters> = with_conformers.collect();
        let all: Vec<&MoleculeClusters> = molecules.iter().map(|one| &one.clusters).collect();
        let strata = Stratum::all().filter_map(|stratum| {
            let own = molecules.iter().filter(|one| one.size.is_some_and(|size| stratum.contains(size)));
            let own: Vec<&MoleculeClusters> = own.map(|one| &one.clusters).collect();
            let figures = ClusterFigures::over(&own, MeanMedian::plain);
            (!own.is_empty()).then_some(ClusterStratum { stratum, figures })
        });
        ClusterReport {
            figures: ClusterFigures::over(&all, MeanMedian::from_values),
            rmsd_upper_bounds: all.iter().map(|one| one.rmsd_upper_bounds).sum(),
            strata: strata.collect(),
        }
    }
}

/// A summary of one value a molecule.
type Summary = fn(&[f64]) -> Option<MeanMedian>;

/// A molecule at a threshold.
#[derive(Clone, Copy)]
struct ClusteredMolecule<'m> {
    molecule: &'m MoleculeClusters,
    occupancy: &'m ThresholdOccupancy,
}

/// Molecules at the threshold of an index. All have the same thresholds.
fn occupied<'m>(molecules: &[&'m MoleculeClusters], at: usize) -> Vec<ClusteredMolecule<'m>> {
    let occupied = molecules.iter();
    occupied.map(|one| ClusteredMolecule { molecule: one, occupancy: &one.thresholds[at] }).collect()
}

impl ClusterFigures {
    fn over(molecules: &[&MoleculeClusters], summary: Summary) -> Self {
        let spreads: Vec<f64> = molecules.iter().filter_map(|one| one.torsion_spread_degrees).collect();
        let thresholds = molecules.first().map_or(0, |first| first.thresholds.len());
        let at = (0..thresholds).map(|at| occupied(molecules, at));
        ClusterFigures {
            molecules: molecules.len() as u64,
            texts: molecules.iter().map(|one| one.texts).sum(),
            conformers: molecules.iter().map(|one| one.conformers).sum(),
            torsion_spread_degrees: summary(&spreads),
            thresholds: at.filter_map(|at| ThresholdClusters::over(&at, summary)).collect(),
        }
    }
}

impl ThresholdClusters {
    /// `None` without molecules.
    fn over(molecules: &[ClusteredMolecule<'_>], summary: Summary) -> Option<Self> {
        let of = |figure: fn(&ClusteredMolecule<'_>) -> f64| {
            summary(&molecules.iter().map(figure).collect::<Vec<f64>>())
        };
        Some(ThresholdClusters {
            angstrom: molecules.first()?.occupancy.angstrom,
            total: molecules.iter().map(|one| one.occupancy.clusters).sum(),
            clusters: of(|one| one.occupancy.clusters as f64)?,
            per_100_conformers: of(|one| 100.0 * one.of_conformers(one.occupancy.clusters))?,
            per_100_texts: of(|one| 100.0 * one.occupancy.clusters as f64 / one.molecule.texts as f64)?,
            entropy_nats: of(|one| one.occupancy.entropy_nats)?,
            evenness: of(|one| one.occupancy.evenness())?,
            effective: of(|one| one.occupancy.effective())?,
            largest_share: of(|one| one.of_conformers(one.occupancy.largest))?,
            simpson: of(|one| one.occupancy.simpson)?,
            singleton_share: of(|one| one.occupancy.singletons as f64 / one.occupancy.clusters as f64)?,
        })
    }
}

impl ClusteredMolecule<'_> {
    /// Returns a number for each conformer.
    fn of_conformers(&self, count: u64) -> f64 {
        count as f64 / self.molecule.conformers as f64
    }
}
