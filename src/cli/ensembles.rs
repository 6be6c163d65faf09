//! `--hits` and `--clusters`: measures of all texts of a molecule together.

use super::values::length;
use drift_core::Error;
use drift_data::audit::ensemble::EnsembleMeasures;

/// The measures of all texts of a molecule together.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct EnsembleArgs {
    /// Hit@K: the thresholds in Å of the best RMSD of K texts
    #[arg(long, value_name = "ANGSTROM", value_parser = length, value_delimiter = ',')]
    hits: Vec<f64>,
    /// The numbers K of texts [default: 1,5,10]
    #[arg(long, value_name = "K", value_delimiter = ',', requires = "hits", value_parser = clap::value_parser!(u64).range(1..))]
    at: Vec<u64>,
    /// Clusters of each molecule's conformers: the thresholds in Å
    #[arg(long, value_name = "ANGSTROM", value_parser = length, value_delimiter = ',')]
    clusters: Vec<f64>,
}

impl EnsembleArgs {
    /// Returns the measures that were asked for.
    ///
    /// # Errors
    /// As [`EnsembleMeasures::checked`].
    pub(super) fn measures(&self) -> Result<EnsembleMeasures, Error> {
        let EnsembleArgs { hits, at, clusters } = self.clone();
        EnsembleMeasures { hits, draws: at, clusters }.checked()
    }
}
