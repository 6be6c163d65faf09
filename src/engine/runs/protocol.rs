//! The settings of a generation, as stored in its record.

use super::plan::{GeneratePlan, Generations};
use crate::model::Synthetic;
use drift_core::constraint::ProcessorKind;
use drift_data::generation::GenerationProtocol;
use drift_data::prompts::Molecules;

/// Returns the settings of the generation. `synthetic` is the shape if the weights are random.
pub(crate) fn generation_protocol(
    plan: &GeneratePlan,
    molecules: &Molecules,
    synthetic: Option<Synthetic>,
) -> GenerationProtocol {
    GenerationProtocol {
        molecules_from: molecules.source.clone(),
        molecules: molecules.measured(),
        pooled_prompts: molecules.is_pooled().then_some(molecules.molecules.len()),
        generations: molecules
            .molecules
            .iter()
            .map(|molecule| plan.generations.of(molecule.conformer_count()))
            .max()
            .unwrap_or(0),
        generations_per_reference: match plan.generations {
            Generations::PerReference(times) => Some(times),
            Generations::Each(_) => None,
        },
        split: molecules.part,
        batch: plan.batch,
        preset: plan.preset.clone(),
        seed: plan.seed,
        max_new_tokens: plan.max_new_tokens,
        engine: plan.engine,
        kv_cache: plan.room,
        prompts_not_in_their_spelling: molecules.foreign_prompts(),
        resample: plan.resample,
        geometry: plan.processors.contains(&ProcessorKind::Geometry).then_some(plan.geometry),
        conformers: Some(plan.form.conformers).filter(|conformers| *conformers > 1),
        opened: plan.form.opened,
        examples: plan.examples.iter().map(|example| example.smiles.clone()).collect(),
        eos: plan.eos.clone(),
        synthetic,
    }
}
