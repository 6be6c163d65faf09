//! The conformers of one molecule as a row or a file has them.

use super::super::geometry::{Conformation, Topology};
use super::cluster_report::SizedClusters;
use super::clusters::Ensemble;
use super::flexibility::Flexibility;
use drift_core::chem::Isotopes;

/// The conformers of a molecule in a row.
pub(in crate::audit) struct MoleculeEnsemble<'m> {
    pub skeleton: &'m str,
    pub conformers: &'m [Conformation],
    /// The number of texts, those without a conformer included.
    pub texts: u64,
    pub isotopes: Isotopes,
}

impl MoleculeEnsemble<'_> {
    /// Returns the clusters at thresholds in Å; `None` without thresholds or conformers, or if the skeleton is not a SMILES, which no
    /// text that passes has.
    pub(in crate::audit) fn clusters(&self, thresholds: &[f64]) -> Option<SizedClusters> {
        let MoleculeEnsemble { skeleton, conformers, texts, isotopes } = *self;
        if thresholds.is_empty() || conformers.is_empty() {
            return None;
        }
        let topology = Topology::with_isotopes(skeleton, isotopes).ok()?;
        let flexibility = Flexibility::from_skeleton(skeleton).ok();
        let torsions = flexibility.as_ref().map_or(&[][..], |known| &known.torsions);
        let ensemble = Ensemble { topology: &topology, torsions, conformers, texts };
        let clusters = ensemble.figures(&ensemble.clusters(thresholds)?, thresholds);
        Some(SizedClusters { size: flexibility.map(|known| known.size), clusters })
    }
}
