//! Hit@K and clusters over the molecules of a judge, with the figures and rules of an audit.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::super::coverage::{Deviations, MissingPolicy};
use super::super::ensemble::{ClusterReport, Flexibility, HitReport, MoleculeHits, SizedClusters, SizedHits};
use super::ensembles::EnsembleScore;
use super::in_memory::{Judge, skeleton_of};
use drift_core::Result;

/// The measures of the texts of one SMILES.
#[derive(Debug, Clone, Copy)]
pub struct MoleculeEnsemble<'s> {
    /// The SMILES.
    pub smiles: &'s str,
    /// What was measured.
    pub score: &'s EnsembleScore,
}

impl Judge {
    /// Hit@K over molecules. With [`MissingPolicy::Zero`], molecules with references count if they have no text, or none that can be
    /// compared.
    ///
    /// # Errors
    /// If a SMILES cannot be read.
    pub fn hit_report(
        &self,
        molecules: &[MoleculeEnsemble<'_>],
        missing: MissingPolicy,
    ) -> Result<HitReport> {
        let mut found = Vec::new();
        let mut asked = BTreeSet::new();
        for MoleculeEnsemble { smiles, score } in molecules {
            let skeleton = skeleton_of(smiles)?;
            asked.insert(skeleton.clone());
            let hits =
                score.hits.as_ref().filter(|hits| missing == MissingPolicy::Zero || hits.conformers > 0);
            found.extend(hits.map(|hits| (skeleton, SizedHits { size: score.size, hits: hits.clone() })));
        }
        if missing == MissingPolicy::Zero {
            let without = self.references().filter(|(skeleton, _)| !asked.contains(*skeleton));
            let without: Vec<(&str, usize)> = without.map(|(skeleton, all)| (skeleton, all.len())).collect();
            let none = |references: usize| Deviations { references, ..Deviations::default() };
            found.par_extend(without.into_par_iter().filter_map(|(skeleton, references)| {
                let hits = MoleculeHits::new(&self.plan().ensembles, 0, &none(references))?;
                let size = Flexibility::from_skeleton(skeleton).ok().map(|known| known.size);
                Some((skeleton.into(), SizedHits { size, hits }))
            }));
        }
        // The order in which an audit sums.
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let found: Vec<SizedHits> = found.into_iter().map(|(_, hits)| hits).collect();
        Ok(HitReport::from_molecules(&found))
    }

    /// Clusters and torsions over molecules with a conformer.
    ///
    /// # Errors
    /// If a SMILES cannot be read.
    pub fn cluster_report(&self, molecules: &[MoleculeEnsemble<'_>]) -> Result<ClusterReport> {
        let mut found = Vec::new();
        for MoleculeEnsemble { smiles, score } in molecules {
            let Some(clusters) = score.clusters.clone() else { continue };
            found.push((skeleton_of(smiles)?, SizedClusters { size: score.size, clusters }));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let found: Vec<SizedClusters> = found.into_iter().map(|(_, clusters)| clusters).collect();
        Ok(ClusterReport::from_molecules(&found))
    }
}
