//! The likelihood of the reference conformers under a model.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::record::Likelihood;
use crate::generate::Text;
use crate::runs::TextStore;
use crate::runs::checkpoint::Checkpoint;
use drift_core::encoding::Fixed;
use drift_core::text::prompt;
use drift_core::text::{tagged, write};
use drift_core::{Error, Job, Result};
use drift_data::corpus::frame::rewritten;
use drift_data::prompts::PromptMolecule;
use drift_data::stats::bootstrap::Mean;

/// For each molecule, the mean nats of its conformers; `None` without conformers.
pub(super) type MoleculeNats = Vec<Option<f64>>;

/// The number of conformers that are scored before their nats are stored.
const AT_ONCE: usize = 256;

/// Scores the conformers of the shard's molecules that are not scored yet.
///
/// # Errors
/// The errors of [`Engine::nats`](crate::generate::Engine::nats), or if the nats cannot be stored.
pub(super) fn score(
    checkpoint: &mut Checkpoint,
    molecules: &[PromptMolecule],
    (kept, model): (&mut TextStore, usize),
    job: &Job,
) -> Result<()> {
    let known = kept.nats(model);
    let mut lacking: Vec<usize> = (0..molecules.len())
        .filter(|molecule| !molecules[*molecule].conformers.is_empty() && !known.contains_key(molecule))
        .collect();
    lacking.retain(|molecule| kept.has(*molecule));
    if kept.is_over() {
        return Ok(());
    }
    let mut lacking = lacking.into_iter().peekable();
    while lacking.peek().is_some() {
        let (mut some, mut texts) = (Vec::new(), Vec::new());
        while let Some(molecule) = lacking.next_if(|_| texts.len() < AT_ONCE) {
            texts.extend(self::texts(checkpoint, &molecules[molecule])?);
            some.push(molecule);
        }
        let nats = checkpoint.engine()?.nats(&texts, job)?;
        // Texts were collected molecule by molecule, so their nats are distributed in the same order.
        let mut rest = nats.into_iter();
        let scored =
            some.into_iter().map(|one| (one, rest.by_ref().take(molecules[one].conformers.len()).collect()));
        kept.keep_nats(model, scored.collect())?;
    }
    Ok(())
}

/// Returns the texts of a molecule's conformers.
fn texts(checkpoint: &Checkpoint, molecule: &PromptMolecule) -> Result<Vec<Text>> {
    let tokenizer = &checkpoint.tokenizer;
    let text = |conformer: &Vec<[Fixed; 3]>| {
        let own = checkpoint.encoding;
        let encodings = (molecule.encoding, own);
        let written =
            rewritten(&molecule.skeleton, conformer, checkpoint.frame, encodings).map_err(|problem| {
                let place = drift_core::error::excerpt(molecule.smiles.as_bytes());
                Error::input(place, problem, "leave its conformers out")
            })?;
        let answer = tagged(&write(&molecule.skeleton, &written, own));
        let mut answer = tokenizer.answer_ids(&answer)?;
        answer.push(checkpoint.specials.eos);
        Ok(Text { prompt: tokenizer.prompt_ids(&prompt(&molecule.smiles))?, answer })
    };
    molecule.conformers.par_iter().map(text).collect()
}

/// Returns the report on the scores, compared with the first model of the evaluation; `None` without reference conformers.
///
/// # Errors
/// If a conformer cannot be encoded.
pub(super) fn likelihood(
    checkpoint: &Checkpoint,
    molecules: &[PromptMolecule],
    nats: &BTreeMap<usize, Vec<f64>>,
    first: Option<&MoleculeNats>,
    seed: u64,
) -> Result<(Option<Likelihood>, MoleculeNats)> {
    let tokens = |molecule: &usize| -> Result<usize> {
        Ok(texts(checkpoint, &molecules[*molecule])?.iter().map(|text| text.answer.len()).sum())
    };
    let tokens: Vec<usize> = nats.par_iter().map(|(molecule, _)| tokens(molecule)).collect::<Result<_>>()?;
    let conformers: usize = nats.values().map(Vec::len).sum();
    // Molecules, not conformers, are the independent items.
    let mean = |own: &Vec<f64>| own.iter().sum::<f64>() / own.len() as f64;
    let means: MoleculeNats = (0..molecules.len()).map(|molecule| nats.get(&molecule).map(mean)).collect();
    let known: Vec<f64> = means.iter().flatten().copied().collect();
    let difference = first.and_then(|first| {
        let pairs = first.iter().zip(&means).filter_map(|(first, own)| Some((*own)? - (*first)?));
        Mean::from_values(&pairs.collect::<Vec<f64>>(), seed)
    });
    let scored = Mean::from_values(&known, seed).map(|nats_per_conformer| Likelihood {
        model: checkpoint.name.clone(),
        tokenizer: checkpoint.tokenizer.name.clone(),
        conformers: conformers as u64,
        tokens_per_conformer: tokens.iter().sum::<usize>() as f64 / conformers as f64,
        nats_per_conformer,
        difference,
    });
    Ok((scored, means))
}
