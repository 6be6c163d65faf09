//! The measures of ensembles for a row: Hit@K, clusters and torsions over its molecules.

use rayon::prelude::*;

use super::coverage::MissingPolicy;
use super::ensemble::{
    ClusterReport, EnsembleMeasures, Flexibility, HitReport, MoleculeEnsemble, MoleculeHits, SizedHits,
};
use super::group::Group;
use super::references::DeviationsBySkeleton;
use super::request::AuditRequest;

/// The measures of a row, as far as they were asked for.
pub(super) struct RowEnsembles {
    /// Hit@K; `None` without references.
    pub hits: Option<HitReport>,
    /// Clusters and torsions.
    pub clusters: Option<ClusterReport>,
}

impl RowEnsembles {
    /// Returns the measures of the texts of a row. `measured` has the comparisons of their conformers with the references.
    pub(super) fn of_row(
        group: &Group,
        measured: Option<&DeviationsBySkeleton>,
        request: &AuditRequest,
    ) -> Self {
        let EnsembleMeasures { hits, clusters, .. } = &request.ensembles;
        RowEnsembles {
            hits: measured.filter(|_| !hits.is_empty()).map(|measured| hit_report(group, measured, request)),
            clusters: (!clusters.is_empty()).then(|| cluster_report(group, request)),
        }
    }
}

/// Molecules follow one another by their skeletons, so that files and evaluations sum in one order.
fn hit_report(group: &Group, measured: &DeviationsBySkeleton, request: &AuditRequest) -> HitReport {
    let counted =
        measured.par_iter().filter(|(_, one)| request.missing == MissingPolicy::Zero || !one.rmsd.is_empty());
    let molecules = counted.filter_map(|(skeleton, deviations)| {
        let texts = group.compared.get(skeleton).copied().unwrap_or(0);
        let hits = MoleculeHits::new(&request.ensembles, texts, deviations)?;
        Some(SizedHits { size: Flexibility::from_skeleton(skeleton).ok().map(|known| known.size), hits })
    });
    HitReport::from_molecules(&molecules.collect::<Vec<_>>())
}

fn cluster_report(group: &Group, request: &AuditRequest) -> ClusterReport {
    let with_conformers = group.generated.par_iter().filter(|(_, conformers)| !conformers.is_empty());
    let molecules = with_conformers.filter_map(|(skeleton, conformers)| {
        let texts = group.compared.get(skeleton).copied().unwrap_or(0);
        let ensemble = MoleculeEnsemble { skeleton, conformers, texts, isotopes: request.isotopes };
        ensemble.clusters(&request.ensembles.clusters)
    });
    ClusterReport::from_molecules(&molecules.collect::<Vec<_>>())
}
