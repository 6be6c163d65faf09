//! The measures of ensembles for a row: Hit@K, clusters and torsions over its molecules.

use rayon::prelude::*;

use super::coverage::Missing;
use super::ensemble::{
    ClusterReport, Ensemble, EnsembleMeasures, Flexibility, HitReport, MoleculeHits, SizedClusters, SizedHits,
};
use super::geometry::{Conformation, Topology};
use super::group::Group;
use super::references::Measured;
use super::request::AuditRequest;

/// The measures of a row, as far as they were asked for.
pub(super) struct RowEnsembles {
    /// Hit@K; `None` without references.
    pub hits: Option<HitReport>,
    /// Clusters and torsions.
    pub clusters: Option<ClusterReport>,
}

impl RowEnsembles {
    /// The measures of the texts of a row. `measured` has the comparisons of their conformers with the references.
    pub(super) fn of_row(group: &Group, measured: Option<&Measured>, request: &AuditRequest) -> Self {
        let EnsembleMeasures { hits, clusters, .. } = &request.ensembles;
        RowEnsembles {
            hits: measured.filter(|_| !hits.is_empty()).map(|measured| hit_report(group, measured, request)),
            clusters: (!clusters.is_empty()).then(|| cluster_report(group, request)),
        }
    }
}

/// Molecules follow one another by their skeletons, so that files and evaluations sum in one order.
fn hit_report(group: &Group, measured: &Measured, request: &AuditRequest) -> HitReport {
    let counted =
        measured.par_iter().filter(|(_, one)| request.missing == Missing::Zero || !one.rmsd.is_empty());
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
        clusters_of(skeleton, conformers, texts, request)
    });
    ClusterReport::from_molecules(&molecules.collect::<Vec<_>>())
}

/// The clusters of a molecule; `None` if its skeleton is not a SMILES, which no text that passes has.
fn clusters_of(
    skeleton: &str,
    conformers: &[Conformation],
    texts: u64,
    request: &AuditRequest,
) -> Option<SizedClusters> {
    let topology = Topology::with_isotopes(skeleton, request.isotopes).ok()?;
    let flexibility = Flexibility::from_skeleton(skeleton).ok();
    let torsions = flexibility.as_ref().map_or(&[][..], |known| &known.torsions);
    let ensemble = Ensemble { topology: &topology, torsions, conformers, texts };
    let thresholds = &request.ensembles.clusters;
    let clusters = ensemble.figures(&ensemble.clusters(thresholds)?, thresholds);
    Some(SizedClusters { size: flexibility.map(|known| known.size), clusters })
}
