//! Follows the automaton beside an engine of one's own: `cargo run --release --example follow_automaton`.
//!
//! The engine computes logits, the automaton says which tokens are legal, and drift's sampler draws among them. A program of this
//! kind needs the crate `drift-core` alone.

#![allow(clippy::print_stdout, reason = "a program that shows what it found")]

use drift::sampling::{Candidates, Noise, Sampling, draw};
use drift::text::skeleton;
use drift::{Encoding, Error, LogitProcessor, Mask, ProcessorKind, Tokenizer};

fn main() -> drift::Result<()> {
    println!("{}", report("CC=O", 1)?);
    Ok(())
}

/// An engine: a forward pass gives logits for the next token.
struct Engine {
    vocabulary: usize,
}

impl Engine {
    /// The logits after the tokens of the prompt and the answer. These are made up; call your model here.
    fn logits(&self, tokens: &[u32]) -> Vec<f32> {
        let last = tokens.last().copied().unwrap_or_default() as usize;
        (0..self.vocabulary).map(|id| ((id * 37 + last * 11) % 101) as f32 / 20.0).collect()
    }
}

/// A text of a molecule, drawn under the automaton.
///
/// # Errors
/// If `smiles` is no SMILES.
pub(crate) fn report(smiles: &str, seed: u64) -> drift::Result<String> {
    let tokenizer = Tokenizer::load("qwen-like".as_ref())?;
    let engine = Engine { vocabulary: tokenizer.vocabulary().len() };
    let end_of_text = tokenizer.vocabulary_id("<|im_end|>").expect("the built-in tokenizer has this token");

    // Once for each tokenizer, and once for each molecule.
    let processor =
        LogitProcessor::new(ProcessorKind::Automaton, tokenizer.clone(), Encoding::FIXED, None, end_of_text)?;
    let skeleton = skeleton::from_smiles(smiles)
        .map_err(|error| Error::input("SMILES", format!("`{smiles}`: {error}"), "give a SMILES"))?;
    let constraint = processor.constraint(&skeleton)?;

    let sampling = Sampling { temperature: Some(0.8), ..Sampling::preset("top-p-1.0-t1.0")? };
    let mut noise = Noise::new(seed, 0, 0);
    let mut tokens = tokenizer.prompt_ids(&format!("[SMILES]{smiles}[/SMILES]"))?;
    let prompt = tokens.len();
    let mut state = constraint.start();
    loop {
        let position = tokens.len() - prompt;
        let token = match constraint.mask(&state) {
            // The only legal token: the engine can read it together with the next one, in one pass.
            Mask::Forced(token) => token,
            // No mask of the size of the vocabulary is written.
            Mask::Only(ids) => {
                draw(Candidates::Only(&engine.logits(&tokens), ids), &sampling, &mut noise, position)?
            }
            Mask::Except(ids) => {
                draw(Candidates::Except(&engine.logits(&tokens), ids), &sampling, &mut noise, position)?
            }
            Mask::Any => {
                draw(Candidates::Except(&engine.logits(&tokens), &[]), &sampling, &mut noise, position)?
            }
        };
        if constraint.is_over(&state, token) {
            break;
        }
        constraint.advance(&mut state, token);
        tokens.push(token);
    }
    tokenizer.answer_text(&tokens[prompt..])
}
