//! Which measures of ensembles were asked for.

use crate::parameter;
use drift_core::error::Parameter;
use drift_core::{Error, Result};

/// The numbers of texts of Hit@K that are used if none are given.
pub const USUAL_DRAWS: [u64; 3] = [1, 5, 10];

/// The measures of ensembles that are computed; by default none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnsembleMeasures {
    /// The thresholds of hits, in Å; empty to measure no hits.
    pub hits: Vec<f64>,
    /// The numbers K of texts among which one has to hit; empty means [`USUAL_DRAWS`].
    pub draws: Vec<u64>,
    /// The thresholds of clusters, in Å; empty to find no clusters.
    pub clusters: Vec<f64>,
}

impl EnsembleMeasures {
    /// Returns the measures with all values ascending, without repetitions, and with the usual numbers of texts if none are given.
    ///
    /// # Errors
    /// If a threshold is negative or not finite, or a number of texts is 0.
    pub fn checked(mut self) -> Result<Self> {
        ascending(&mut self.hits, parameter::HITS)?;
        ascending(&mut self.clusters, parameter::CLUSTERS)?;
        if self.draws.contains(&0) {
            return Err(Error::parameter(parameter::DRAWS, "0 texts never hit", "give 1 or more"));
        }
        if self.draws.is_empty() {
            self.draws = USUAL_DRAWS.to_vec();
        }
        self.draws.sort_unstable();
        self.draws.dedup();
        Ok(self)
    }

    /// Returns whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty() && self.clusters.is_empty()
    }
}

/// What the results for a molecule contain besides counts.
#[derive(Debug, Clone, Copy)]
pub struct MoleculeMeasures<'m> {
    /// The thresholds of the coverage, in Å.
    pub thresholds_angstrom: &'m [f64],
    /// Hit@K and clusters.
    pub ensembles: &'m EnsembleMeasures,
}

fn ascending(thresholds: &mut Vec<f64>, parameter: Parameter) -> Result<()> {
    if let Some(wrong) = thresholds.iter().find(|angstrom| !(angstrom.is_finite() && **angstrom >= 0.0)) {
        let problem = format!("{wrong} is no threshold");
        return Err(Error::parameter(parameter, problem, "give a length in Å, 0 or more"));
    }
    thresholds.sort_by(f64::total_cmp);
    thresholds.dedup();
    Ok(())
}
