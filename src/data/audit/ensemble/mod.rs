//! Measures of all texts of a molecule together, as ensembles of conformers are judged.
//!
//! - [`MoleculeHits`]: how likely K texts contain one that is close to a reference, and how close the best of K is.
//! - [`MoleculeClusters`]: how many different conformers there are, how evenly the texts cover them, and how far torsions spread.
//! - [`HitReport`] and [`ClusterReport`] have the means over molecules, also by [`Stratum`]: rotatable bonds and heavy atoms.

mod cluster_report;
mod clusters;
mod flexibility;
mod hit_report;
mod hits;
mod measures;
mod molecule;
mod strata;
mod torsions;

pub(super) use cluster_report::SizedClusters;
pub use cluster_report::{ClusterFigures, ClusterReport, ClusterStratum, ThresholdClusters};
pub use clusters::{ConformerClusters, Ensemble, MoleculeClusters, ThresholdOccupancy, cluster};
pub use flexibility::Flexibility;
pub(super) use hit_report::SizedHits;
pub use hit_report::{HitReport, HitStratum, HitsAt, ThresholdHits};
pub use hits::{BestOf, ExpectedHits, MoleculeHits, expected_least, share_of_draws_with};
pub use measures::{EnsembleMeasures, MoleculeMeasures, USUAL_DRAWS};
pub(super) use molecule::MoleculeEnsemble;
pub use strata::{MoleculeSize, SizeKind, Stratum};
pub use torsions::torsion_spread;
