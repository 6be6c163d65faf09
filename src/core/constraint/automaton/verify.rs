//! Compares the automaton with the encoder: every text is accepted in its own tokens, and every accepted token sequence is what the
//! encoder produces.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::AutomatonProcessor;
use super::learn::refuse;
use super::molecule::MoleculeAutomaton;
use crate::constraint::Constraint;
use crate::encoding::{Encoding, Fixed, Reading};
use crate::error::Result;
use crate::text::skeleton::{placed, smiles};
use crate::text::{CONFORMER_CLOSE, CONFORMER_OPEN, parse, prompt, tagged, write};
use crate::tokenizer::BUILT_IN_SKELETONS;

/// The number of times that each skeleton is filled and walked through before a tokenizer is accepted.
const ROUNDS: usize = 6;

/// Compares on random texts, and on all runs of up to four decimals. Random texts alone could miss a tokenizer that cuts one run in
/// a hundred differently.
///
/// # Errors
/// On the first text that differs.
pub(super) fn verify(processor: &AutomatonProcessor, encoding: Encoding) -> Result<()> {
    every_run(processor, encoding)?;
    // The seed is fixed, so that the verdict on a tokenizer is the same in every run.
    let mut random = ChaCha8Rng::seed_from_u64(0);
    for skeleton in BUILT_IN_SKELETONS {
        let prompt = prompt(&smiles(skeleton));
        let skeleton = placed(skeleton, encoding.slots());
        let molecule_automaton = processor.molecule(&skeleton)?;
        for _ in 0..ROUNDS {
            let coordinates: Vec<[Fixed; 3]> =
                (0..skeleton.matches("<>").count()).map(|_| values(encoding, &mut random)).collect();
            followed(processor, &molecule_automaton, &write(&skeleton, &coordinates, encoding))?;
            walked(processor, &molecule_automaton, &prompt, &mut random)?;
        }
    }
    Ok(())
}

/// Compares on random texts behind a prompt of another kind. The texts between slots do not depend on it, but for the first one.
///
/// # Errors
/// On the first text that differs.
pub(super) fn behind_prompt(processor: &AutomatonProcessor) -> Result<()> {
    let encoding = processor.automaton.encoding;
    let mut random = ChaCha8Rng::seed_from_u64(0);
    for skeleton in BUILT_IN_SKELETONS {
        let molecule_automaton = processor.molecule(&placed(skeleton, encoding.slots()))?;
        walked(processor, &molecule_automaton, &processor.prompt_end, &mut random)?;
    }
    Ok(())
}

/// Walks through a molecule at random, and compares the tokens with those of the text behind a prompt.
fn walked(
    processor: &AutomatonProcessor,
    molecule_automaton: &MoleculeAutomaton,
    prompt: &str,
    random: &mut ChaCha8Rng,
) -> Result<()> {
    let (tokenizer, encoding) = (&*processor.tokenizer, processor.automaton.encoding);
    let prompt_ids = tokenizer.prompt_ids(prompt)?;
    let walked = walk(molecule_automaton, random);
    let text = tokenizer.answer_text(&walked)?;
    // The prompt's last tokens are compared too: no token may reach from the answer into the prompt.
    let expected = [&prompt_ids[prompt_ids.len().saturating_sub(2)..], &walked].concat();
    // The tokenizer may add a space behind a tag. It is decoded as a space but does not belong to the text.
    let bare = text.trim_start().replace("] ", "]");
    let without = text.replace(' ', "");
    for text in [&text, &bare, &without] {
        if tokenizer.ids(&format!("{prompt}{text}"))?.ends_with(&expected) && is_legal(text, encoding) {
            return Ok(());
        }
    }
    let text = text.escape_debug();
    Err(refuse(tokenizer, format!("`{text}` has tokens that were not allowed")))
}

/// Checks every run of decimals and every integer part below 100.
fn every_run(processor: &AutomatonProcessor, encoding: Encoding) -> Result<()> {
    if !encoding.is_decimal() {
        return Ok(());
    }
    let decimals = encoding.precision().decimals();
    let (unit, first) = (encoding.precision().units_per_angstrom(), Fixed::pow(10, decimals.min(4) as u32));
    // The integer part varies too, so that it takes all its values.
    let value =
        |run: Fixed| [1, -1][(run / 7 % 2) as usize] * (run % 100 * unit + run % first * (unit / first));
    let most_slots = BUILT_IN_SKELETONS.iter().max_by_key(|skeleton| skeleton.matches("<>").count());
    let Some(skeleton) = most_slots else { return Ok(()) };
    let skeleton = placed(skeleton, encoding.slots());
    let automaton = processor.molecule(&skeleton)?;
    let slots = skeleton.matches("<>").count();
    let runs: Vec<[Fixed; 3]> = (0..first.max(100))
        .step_by(3)
        .map(|run| std::array::from_fn(|axis| value(run + axis as Fixed)))
        .collect();
    for chunk in runs.chunks(slots) {
        let mut coordinates = chunk.to_vec();
        coordinates.resize(slots, [0; 3]);
        followed(processor, &automaton, &write(&skeleton, &coordinates, encoding))?;
    }
    Ok(())
}

/// Refuses a tokenizer if its own tokens for a conformer's text are not legal.
fn followed(processor: &AutomatonProcessor, molecule: &MoleculeAutomaton, conformer: &str) -> Result<()> {
    let (tokenizer, text) = (&processor.tokenizer, tagged(conformer));
    if accepts(molecule, &tokenizer.answer_ids(&text)?) {
        return Ok(());
    }
    Err(refuse(tokenizer, format!("it is not followed through `{text}`")))
}

/// Returns whether an answer is a legal text of the encoding.
fn is_legal(answer: &str, encoding: Encoding) -> bool {
    let inside = answer.strip_prefix(CONFORMER_OPEN).unwrap_or(answer);
    // The closing tag of a conformer may be the EOS token itself.
    let inside = inside.strip_suffix(CONFORMER_CLOSE).unwrap_or(inside);
    parse(inside, Reading::new(encoding)).is_ok()
}

/// Random values of every magnitude that the grammar allows; for decimals with and without trailing zeros.
fn values(encoding: Encoding, random: &mut ChaCha8Rng) -> [Fixed; 3] {
    std::array::from_fn(|axis| {
        if !encoding.is_decimal() {
            let (low, high) = encoding.number().limits(axis);
            return random.random_range(low..=high);
        }
        let limit =
            encoding.precision().units_per_angstrom() * [1, 10, 15, 100][random.random_range(0..4)] - 1;
        // A multiple of the step ends in zeros, which the stripped encoding removes.
        let step = [1, 1, 1, 10, 100, 1_000, 10_000][random.random_range(0..7)];
        random.random_range(-limit..=limit) / step * step
    })
}

/// Returns whether the tokens of an answer are legal and complete it.
fn accepts(molecule_automaton: &MoleculeAutomaton, ids: &[u32]) -> bool {
    let mut state = molecule_automaton.start();
    // The closing tag of a conformer may be the EOS token itself.
    let ids = ids.strip_suffix(&[molecule_automaton.eos]).unwrap_or(ids);
    for &id in ids {
        if molecule_automaton.is_over(&state, id) || !molecule_automaton.mask(&state).allows(id) {
            return false;
        }
        molecule_automaton.advance(&mut state, id);
    }
    molecule_automaton.is_over(&state, molecule_automaton.eos)
}

/// Returns the tokens of a random legal answer, without EOS.
fn walk(molecule_automaton: &MoleculeAutomaton, random: &mut ChaCha8Rng) -> Vec<u32> {
    let mut state = molecule_automaton.start();
    let mut ids = Vec::new();
    while !molecule_automaton.is_over(&state, molecule_automaton.eos) {
        // No state of an automaton allows every token, or none.
        let Some(id) = molecule_automaton.mask(&state).drawn(random) else { break };
        ids.push(id);
        molecule_automaton.advance(&mut state, id);
    }
    ids
}
