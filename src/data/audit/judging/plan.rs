//! The settings for judging texts in memory.

use super::super::ensemble::EnsembleMeasures;
use super::super::geometry::COVERAGE_THRESHOLD_ANGSTROM;
use super::duplicates::DUPLICATE_ANGSTROM;
use super::reward::Reward;
use drift_core::chem::{AtomLimit, Isotopes};
use drift_core::{Encoding, Error, Result};

/// The settings for judging texts.
#[derive(Debug, Clone)]
pub struct JudgePlan {
    /// The encoding of the texts, and of references given as text.
    pub encoding: Encoding,
    /// The thresholds of coverage, in Å; at least one.
    pub thresholds: Vec<f64>,
    /// The measures of all texts of a molecule together: Hit@K, and clusters.
    pub ensembles: EnsembleMeasures,
    /// Whether the conformers of each text are compared with one another.
    pub within_texts: bool,
    /// Conformers of a group with an RMSD below this, in Å, are duplicates; 0 turns this off.
    pub duplicate_angstrom: f64,
    /// The size limit for molecules that are compared.
    pub max_atoms: AtomLimit,
    /// Whether isotope labels tell molecules and their atoms apart.
    pub isotopes: Isotopes,
    /// Whether all conformers of a text are judged, or only the first.
    pub all_conformers: bool,
    /// The parts of [`ScoredConformer::reward`](super::ScoredConformer::reward).
    pub reward: Reward,
}

impl Default for JudgePlan {
    fn default() -> Self {
        JudgePlan {
            encoding: Encoding::FIXED,
            thresholds: vec![COVERAGE_THRESHOLD_ANGSTROM],
            ensembles: EnsembleMeasures::default(),
            within_texts: false,
            duplicate_angstrom: DUPLICATE_ANGSTROM,
            max_atoms: AtomLimit::default(),
            isotopes: Isotopes::Ignore,
            all_conformers: false,
            reward: Reward::default(),
        }
    }
}

impl JudgePlan {
    /// Refuses settings that cannot be measured.
    ///
    /// # Errors
    /// If there is no threshold, a threshold is not a positive number, the bound of duplicates is negative, or a weight is not
    /// finite.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |problem: String| Err(Error::input("the judge", problem, ""));
        if self.thresholds.is_empty() {
            return refuse("needs a coverage threshold".to_owned());
        }
        if let Some(threshold) = self.thresholds.iter().find(|t| !(t.is_finite() && **t > 0.0)) {
            return refuse(format!("{threshold} is not a threshold: give a length above 0 Å"));
        }
        if !(self.duplicate_angstrom.is_finite() && self.duplicate_angstrom >= 0.0) {
            let bound = self.duplicate_angstrom;
            return refuse(format!(
                "{bound} is not a bound for duplicates: give a length in Å, or 0 for none"
            ));
        }
        match self.reward.0.iter().find(|(_, weight)| !weight.is_finite()) {
            Some((part, weight)) => refuse(format!("the weight {weight} of `{}` is not finite", part.name())),
            None => Ok(()),
        }
    }
}
