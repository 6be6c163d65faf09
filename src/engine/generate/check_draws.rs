//! Compares the draws of a device with those of the host, for the self-check of runs in which candle computes the steps. The same
//! logits must give the same tokens.

use super::compared::StepComparison;
use super::head::rows_of_logits;
use super::on_device::Starter;
use super::{Options, Prompt};
use crate::model::cuda::{RowDraw, VocabularySampler};
use crate::model::{Decoder, Feed, HiddenStates, Room};
use drift_core::Result;
use drift_core::constraint::Mask;
use drift_core::sampling::{Candidates, Noise, draw};

/// How many of the last tokens of a prompt are read. Any logits will do for this check.
const READ: usize = 64;

/// Makes draws for `positions` positions of each prompt's text, from the logits after the prompt, under the masks of successive
/// positions.
///
/// # Errors
/// If the device fails, or has no room.
pub(super) fn check_draws(
    starter: Starter<'_>,
    decoder: &Decoder,
    (prompts, options): (&[Prompt], &Options),
    positions: usize,
) -> Result<StepComparison> {
    let mut compared = StepComparison::new(decoder, prompts.len(), options);
    if prompts.is_empty() {
        return Ok(compared);
    }
    let mut cache =
        decoder.cache(prompts.len(), READ.min(decoder.config().max_position_embeddings), Room::Static)?;
    let end = |prompt: &'_ Prompt| prompt.tokens.len().saturating_sub(READ)..prompt.tokens.len();
    let feeds: Vec<Feed<'_>> = (prompts.iter().enumerate())
        .map(|(row, prompt)| Feed { row, tokens: &prompt.tokens[end(prompt)] })
        .collect();
    let hidden = decoder.forward(&feeds, &mut cache, HiddenStates::Last)?;
    let logits = rows_of_logits(decoder, &hidden, None)?;
    let mut sampler = VocabularySampler::new((starter.start)()?, prompts.len(), &options.sampling)?;
    let mut noise: Vec<Noise> =
        prompts.iter().map(|prompt| Noise::new(options.seed, prompt.number, 0)).collect();
    let mut states: Vec<_> = prompts.iter().map(|prompt| prompt.constraint.start()).collect();
    for position in 0..positions {
        let excluded: Vec<&[u32]> = (prompts.iter().zip(&states))
            .map(|(prompt, state)| match prompt.constraint.mask(state) {
                Mask::Except(ids) => ids,
                _ => &[],
            })
            .collect();
        let draws: Vec<RowDraw<'_>> = (noise.iter().zip(&excluded))
            .map(|(noise, excluded)| RowDraw { noise, position, excluded })
            .collect();
        let found = sampler.draw(&decoder.logits_on_device(&hidden)?, &draws)?;
        for (row, found) in found.into_iter().enumerate() {
            let candidates = Candidates::Except(&logits[row], excluded[row]);
            let expected = draw(candidates, &options.sampling, &mut noise[row], position)?;
            compared.choices += 1;
            if found != expected {
                let problem =
                    format!("row {row}, token {position}: the draw is {found}, by the host {expected}");
                compared.differs(problem);
                return Ok(compared);
            }
            let constraint = &prompts[row].constraint;
            let token = match constraint.mask(&states[row]) {
                Mask::Forced(token) => token,
                mask if mask.allows(expected) => expected,
                _ => continue,
            };
            if !constraint.is_over(&states[row], token) {
                constraint.advance(&mut states[row], token);
            }
        }
    }
    Ok(compared)
}
