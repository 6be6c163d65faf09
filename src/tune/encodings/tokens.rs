//! The token costs of an encoding with a tokenizer: the tokens of blocks and conformers, and how many of them the automaton forces.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;

use crate::design::measured::corpus::tokens_of_block;
use drift_core::constraint::automaton::AutomatonProcessor;
use drift_core::constraint::{Constraint, Mask};
use drift_core::encoding::Fixed;
use drift_core::text::{self, SMILES_CLOSE, SMILES_OPEN, skeleton};
use drift_core::{Encoding, Job, Result, Tokenizer};
use drift_data::corpus::Conformer;

/// The number of conformers that are followed through the automaton.
const FOLLOWED: usize = 500;

/// The token costs on a sample of conformers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TokenCosts {
    /// The tokens of a block, including the opening and closing characters.
    pub tokens_per_block: TokensPerBlock,
    /// The mean number of tokens of prompt and answer.
    pub tokens_per_conformer: f64,
    /// The mean number of tokens of the answer, with the end token.
    pub tokens_per_answer: f64,
    /// The share of the answer's tokens that the automaton forces, counting the end token; null if there is no automaton.
    pub forced_share: Option<f64>,
    /// The mean number of an answer's tokens that the automaton leaves to the model. This is the number of forward passes,
    /// including the one for the prompt.
    pub passes_per_conformer: Option<f64>,
    /// Whether every block took the same number of tokens.
    pub constant: bool,
}

/// The number of tokens of a block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TokensPerBlock {
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
    /// The mean.
    pub mean: f64,
}

/// Conformers of a corpus.
#[derive(Clone, Copy)]
pub(super) struct Sample<'a> {
    /// The conformers.
    pub(super) conformers: &'a [Conformer],
    /// The encoding whose values their coordinates are.
    pub(super) encoding: Encoding,
}

/// Counts the tokens on a sample. Conformers that the encoding cannot write are skipped, as
/// in [`super::TextLoss`].
///
/// # Errors
/// If a text cannot be encoded, or the job was cancelled.
pub(super) fn costs(
    tokenizer: &Tokenizer,
    encoding: Encoding,
    sample: Sample<'_>,
    job: &Job,
) -> Result<TokenCosts> {
    // Not an id of any vocabulary: the end is one more token, whatever its id is.
    let eos = u32::MAX;
    let automaton = AutomatonProcessor::new(Arc::new(tokenizer.clone()), encoding, eos).ok();
    let counted: Vec<Option<ConformerTokens>> = sample
        .conformers
        .par_iter()
        .enumerate()
        .map(|(place, conformer)| {
            job.check()?;
            let Some((skeleton, text)) = written(conformer, sample.encoding, encoding, place) else {
                return Ok(None);
            };
            let smiles = skeleton::smiles(&conformer.skeleton);
            let prompt = tokenizer.prompt_ids(&format!("{SMILES_OPEN}{smiles}{SMILES_CLOSE}"))?;
            let found = tokenizer.answer_tokens_of(&text, encoding)?;
            let ranges = encoding.slot_ranges(&text);
            let blocks = ranges.iter().map(|range| tokens_of_block(&found, range, encoding)).collect();
            let ids: Vec<u32> = found.iter().map(|token| token.id).chain([eos]).collect();
            let automaton = automaton.as_ref().filter(|_| place < FOLLOWED);
            let forced = automaton.and_then(|automaton| forced(automaton, &skeleton, &ids));
            Ok(Some(ConformerTokens {
                tokens: (prompt.len() + found.len()) as u64,
                answer: ids.len() as u64,
                blocks,
                forced,
            }))
        })
        .collect::<Result<_>>()?;
    Ok(summed(&counted.into_iter().flatten().collect::<Vec<_>>()))
}

/// The counts of one conformer.
struct ConformerTokens {
    tokens: u64,
    answer: u64,
    blocks: Vec<u64>,
    forced: Option<u64>,
}

fn summed(counted: &[ConformerTokens]) -> TokenCosts {
    let blocks = || counted.iter().flat_map(|one| one.blocks.iter().copied());
    let mean = |sum: u64, count: usize| sum as f64 / count.max(1) as f64;
    // Answers that the automaton does not accept are left out of both sums; otherwise the share would be too small.
    let followed: Vec<(u64, u64)> =
        counted.iter().filter_map(|one| Some((one.forced?, one.answer))).collect();
    let (forced, answers) = followed.iter().fold((0, 0), |(a, b), (forced, answer)| (a + forced, b + answer));
    let (min, max) = (blocks().min().unwrap_or(0), blocks().max().unwrap_or(0));
    TokenCosts {
        tokens_per_block: TokensPerBlock { min, max, mean: mean(blocks().sum(), blocks().count()) },
        tokens_per_conformer: mean(counted.iter().map(|one| one.tokens).sum(), counted.len()),
        tokens_per_answer: mean(counted.iter().map(|one| one.answer).sum(), counted.len()),
        forced_share: (answers > 0).then(|| forced as f64 / answers as f64),
        passes_per_conformer: (answers > 0).then(|| mean(answers - forced, followed.len())),
        constant: min == max,
    }
}

/// Returns a conformer's skeleton and tagged text in an encoding. Codes are drawn at random, since they do not follow from coordinates.
/// `None` if a coordinate is outside what the encoding can write.
fn written(
    conformer: &Conformer,
    from: Encoding,
    encoding: Encoding,
    place: usize,
) -> Option<(String, String)> {
    let skeleton = skeleton::placed(&conformer.skeleton, encoding.slots()).into_owned();
    let values: Vec<[Fixed; 3]> = if encoding.has_coordinates() {
        let values = conformer.coordinates.iter().map(|values| encoding.convert(values, from).ok());
        values.collect::<Option<_>>()?
    } else {
        // Seeded by position, so that the drawn codes do not depend on threads.
        let mut random = ChaCha8Rng::seed_from_u64(place as u64);
        let (low, high) = encoding.number().limits(0);
        (0..skeleton.matches("<>").count()).map(|_| [random.random_range(low..=high); 3]).collect()
    };
    let text = text::tagged(&text::write(&skeleton, &values, encoding));
    Some((skeleton, text))
}

/// Returns the number of forced tokens of an answer; `None` if the automaton does not accept the answer.
fn forced(automaton: &AutomatonProcessor, skeleton: &str, ids: &[u32]) -> Option<u64> {
    let molecule_automaton = automaton.molecule(skeleton).ok()?;
    let mut state = molecule_automaton.start();
    let mut forced = 0;
    for &id in ids {
        let mask = molecule_automaton.mask(&state);
        if !mask.allows(id) {
            return None;
        }
        // A run of forced tokens is fed in one pass with the token before it, so no forced token needs its own pass.
        forced += u64::from(matches!(mask, Mask::Forced(_)));
        molecule_automaton.advance(&mut state, id);
    }
    Some(forced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformers_that_cannot_be_written_are_left_out() {
        let conformer = |x: Fixed| Conformer::new("C".into(), "[C]<>".into(), vec![[x, 0, 10_000]]);
        // Six decimals end at 999.999999 Å; 2,000 Å would have been written as 0.
        let (near, far) = (conformer(15_000), conformer(20_000_000));
        let six: Encoding = "fixed-6".parse().unwrap();
        let written = |conformer: &Conformer| written(conformer, Encoding::FIXED, six, 0);
        assert!(written(&near).unwrap().1.contains("<1.500000,0.000000,1.000000>"));
        assert_eq!(written(&far), None);
        let tokenizer = Tokenizer::load(std::path::Path::new("qwen-like")).unwrap();
        let of = |conformers: &[Conformer]| {
            costs(&tokenizer, six, Sample { conformers, encoding: Encoding::FIXED }, &Job::default())
        };
        assert_eq!(of(&[near.clone(), far]).unwrap(), of(&[near]).unwrap());
    }
}
