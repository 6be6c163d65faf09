//! How likely a model holds the reference conformers.

use rayon::prelude::*;

use super::checkpoint::Checkpoint;
use super::record::Likelihood;
use super::subject::Subject;
use crate::error::Result;
use crate::generate::Text;
use crate::job::Job;
use crate::stats::bootstrap::Mean;
use crate::text::{Fixed, tagged, write};
use crate::train::prompt;

/// Nats of a conformer, a mean over those of each molecule; none for a molecule without.
pub(super) type MoleculeNats = Vec<Option<f64>>;

/// Measures it, beside the first model of the evaluation; none without reference conformers.
pub(super) fn likelihood(
    checkpoint: &Checkpoint,
    subjects: &[Subject],
    first: Option<&MoleculeNats>,
    (seed, job): (u64, &Job),
) -> Result<(Option<Likelihood>, MoleculeNats)> {
    let tokenizer = &checkpoint.tokenizer;
    let conformers: Vec<_> = subjects
        .iter()
        .flat_map(|subject| {
            let molecule = &subject.molecule;
            molecule.conformers.iter().map(move |conformer| (molecule, conformer))
        })
        .collect();
    let text = |(molecule, conformer): &(&super::molecules::Molecule, &Vec<[Fixed; 3]>)| {
        let own = checkpoint.dialect.precision();
        let conformer: Vec<[Fixed; 3]> =
            conformer.iter().map(|block| block.map(|value| own.convert(value, molecule.precision))).collect();
        let answer = tagged(&write(&molecule.skeleton, &conformer, checkpoint.dialect));
        let mut answer = tokenizer.answer_ids(&answer)?;
        answer.push(checkpoint.specials.eos);
        Ok(Text { prompt: tokenizer.prompt_ids(&prompt(&molecule.smiles))?, answer })
    };
    let texts = conformers.par_iter().map(text).collect::<Result<Vec<Text>>>()?;
    let nats = checkpoint.engine.nats(&texts, job)?;
    let tokens: usize = texts.iter().map(|text| text.answer.len()).sum();
    // Molecules are the independent items, not conformers.
    let mut means = MoleculeNats::new();
    let mut rest = &nats[..];
    for subject in subjects {
        let (own, others) = rest.split_at(subject.molecule.conformers.len());
        rest = others;
        means.push((!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64));
    }
    let known: Vec<f64> = means.iter().flatten().copied().collect();
    let difference = first.and_then(|first| {
        let pairs = first.iter().zip(&means).filter_map(|(first, own)| Some((*own)? - (*first)?));
        Mean::of(&pairs.collect::<Vec<f64>>(), seed)
    });
    let scored = Mean::of(&known, seed).map(|nats_per_conformer| Likelihood {
        model: checkpoint.name.clone(),
        tokenizer: tokenizer.name.clone(),
        conformers: texts.len() as u64,
        tokens_per_conformer: tokens as f64 / texts.len() as f64,
        nats_per_conformer,
        difference,
    });
    Ok((scored, means))
}
