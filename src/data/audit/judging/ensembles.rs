//! The measures of the texts of one molecule together, and the distances between the conformers of one text.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::super::coverage::Deviations;
use super::super::ensemble::{ConformerClusters, Ensemble, MoleculeClusters, MoleculeHits, MoleculeSize};
use super::super::geometry::Conformation;
use super::molecule::JudgedMolecule;
use super::plan::JudgePlan;
use drift_core::Result;

/// The measures of one molecule's texts together, as far as they were asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EnsembleScore {
    /// Its heavy atoms and rotatable bonds.
    pub size: Option<MoleculeSize>,
    /// Hit@K; `None` without references.
    pub hits: Option<MoleculeHits>,
    /// Clusters and torsions; `None` without conformers.
    pub clusters: Option<MoleculeClusters>,
}

/// The measures of one molecule's texts, and the cluster of each of its conformers.
#[derive(Default)]
pub(super) struct GroupEnsemble {
    pub score: EnsembleScore,
    /// By threshold and conformer that can be compared, its cluster.
    pub clusters: ConformerClusters,
}

impl GroupEnsemble {
    /// Returns the measures of a molecule with `texts` texts and these conformers, whose distances from the references are known.
    pub(super) fn of(
        plan: &JudgePlan,
        molecule: &JudgedMolecule,
        texts: usize,
        conformers: &[Conformation],
        deviations: &Deviations,
    ) -> Result<Self> {
        let (measures, texts) = (&plan.ensembles, texts as u64);
        let mut ensemble = GroupEnsemble::default();
        if measures.is_empty() {
            return Ok(ensemble);
        }
        ensemble.score.size = molecule.flexibility().map(|known| known.size);
        if !measures.hits.is_empty() {
            ensemble.score.hits = MoleculeHits::new(measures, texts, deviations);
        }
        if !measures.clusters.is_empty() && !conformers.is_empty() {
            let topology = molecule.topology(plan.isotopes)?;
            let torsions = molecule.flexibility().map_or(&[][..], |known| &known.torsions);
            let own = Ensemble { topology, torsions, conformers, texts };
            if let Some(found) = own.clusters(&measures.clusters) {
                ensemble.score.clusters = Some(own.figures(&found, &measures.clusters));
                ensemble.clusters = found;
            }
        }
        Ok(ensemble)
    }
}

/// A text, as far as its conformers are compared with one another.
pub(super) struct ComparedText<'p> {
    pub molecule: &'p JudgedMolecule,
    /// Its conformers; `None` for those that cannot be compared.
    pub conformers: &'p [Option<Conformation>],
}

impl ComparedText<'_> {
    /// Returns the RMSDs of all pairs of its conformers, `[conformers × conformers]` in Å; NaN for conformers that cannot be compared.
    ///
    /// # Errors
    /// If the molecule cannot be read.
    fn distances(&self, plan: &JudgePlan) -> Result<Vec<f64>> {
        let n = self.conformers.len();
        let mut distances = vec![f64::NAN; n * n];
        if self.conformers.iter().all(Option::is_none) {
            return Ok(distances);
        }
        let topology = self.molecule.topology(plan.isotopes)?;
        for (i, first) in self.conformers.iter().enumerate() {
            let Some(first) = first else { continue };
            distances[i * n + i] = 0.0;
            for (j, second) in self.conformers.iter().enumerate().take(i) {
                let rmsd =
                    second.as_ref().and_then(|second| topology.rmsd(second, first)).unwrap_or(f64::NAN);
                (distances[i * n + j], distances[j * n + i]) = (rmsd, rmsd);
            }
        }
        Ok(distances)
    }
}

/// By text, the RMSDs of all pairs of its conformers.
///
/// # Errors
/// As [`ComparedText::distances`].
pub(super) fn within_texts(plan: &JudgePlan, texts: &[ComparedText<'_>]) -> Result<Vec<Vec<f64>>> {
    texts.par_iter().map(|text| text.distances(plan)).collect()
}
