//! The settings of an evaluation, as stored in its record.

use super::plan::EvalPlan;
use super::record::Protocol;
use crate::model::Synthetic;
use crate::runs::protocol::generation_protocol;
use drift_data::prompts::Molecules;

/// Returns the protocol of a plan for some molecules. `synthetic` is the shape if the weights are random.
pub(super) fn protocol(plan: &EvalPlan, molecules: &Molecules, synthetic: Option<Synthetic>) -> Protocol {
    Protocol {
        generation: generation_protocol(&plan.generate, molecules, synthetic),
        references: molecules.references.clone(),
        strip_junk: plan.strip_junk,
        missing: plan.missing,
    }
}
