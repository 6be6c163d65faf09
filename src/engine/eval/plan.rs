//! The plan of an evaluation.

use std::sync::Arc;

use super::texts::OtherTexts;
use crate::runs::plan::GeneratePlan;
use drift_core::Encoding;
use drift_core::chem::AtomLimit;
use drift_core::constraint::ProcessorKind;
use drift_data::audit::ensemble::{EnsembleMeasures, MoleculeMeasures};
use drift_data::audit::{AuditPlan, AuditRequest, MissingPolicy};
use drift_data::energy::Energies;

/// A complete and checked plan of an evaluation.
#[derive(Debug, Clone)]
pub struct EvalPlan {
    /// What is generated.
    pub generate: GeneratePlan,
    /// The coverage thresholds in Å, ascending.
    pub thresholds: Vec<f64>,
    /// The measures of all texts of a molecule together.
    pub ensembles: EnsembleMeasures,
    /// Whether to strip junk from numbers before the texts are judged, as users proposed.
    pub strip_junk: bool,
    /// The size of the largest molecule that is compared. A text with a larger molecule counts as another molecule than its
    /// prompt's.
    pub max_atoms: AtomLimit,
    /// Whether to compute the likelihood of the reference conformers.
    pub likelihood: bool,
    /// How molecules without a comparable text count in coverage and matching.
    pub missing: MissingPolicy,
    /// Whether to keep the results for each text.
    pub by_text: bool,
    /// Whether to keep the results for each molecule. Their clusters take as long as those of the rows.
    pub by_molecule: bool,
    /// The texts of another run with which these are compared.
    pub same_as: Option<Arc<OtherTexts>>,
    /// The program that computes the energies of texts; `None` to compute none.
    pub energy: Option<Arc<Energies>>,
}

impl EvalPlan {
    /// Returns what the results for a molecule contain.
    pub fn molecule_measures(&self) -> MoleculeMeasures<'_> {
        MoleculeMeasures { thresholds_angstrom: &self.thresholds, ensembles: &self.ensembles }
    }

    /// Returns how texts of an encoding are judged.
    pub(super) fn audit_plan(&self, encoding: Encoding) -> AuditPlan {
        let request = AuditRequest {
            thresholds: self.thresholds.clone(),
            ensembles: self.ensembles.clone(),
            missing: self.missing,
            pool: true,
            by_text: true,
            max_atoms: self.max_atoms,
            against_row: Some(ProcessorKind::None.name().to_owned()),
            ..AuditRequest::default()
        };
        AuditPlan {
            request,
            encoding: Some(encoding),
            recipe: None,
            like: encoding,
            energy: self.energy.clone(),
        }
    }
}
