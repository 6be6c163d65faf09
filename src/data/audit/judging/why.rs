//! Explains why a text does not pass.

use super::super::outcome::Outcome;
use super::super::sample::{TextVerdict, judged_blocks, split};
use drift_core::Encoding;
use drift_core::chem::{AtomLimit, Isotopes, Molecule, same_molecule};
use drift_core::error::{one_line, shortened_end};
use drift_core::text::skeleton::smiles;
use drift_core::text::{CONFORMER_CLOSE, CONFORMER_OPEN};

/// The largest number of quoted characters of a text.
const QUOTED: usize = 60;

/// Returns the reason why a tagged text does not pass; empty if it does.
pub(in crate::audit) fn why(
    text: &str,
    encoding: Encoding,
    verdict: &TextVerdict,
    prompt: Option<&str>,
) -> String {
    let quoted = |text: &str| shortened_end(&one_line(text), QUOTED);
    match verdict.outcome {
        Outcome::Pass => String::new(),
        Outcome::NoEos if !text.contains(CONFORMER_OPEN) => format!("no end: no {CONFORMER_OPEN}"),
        Outcome::NoEos if !text.contains(CONFORMER_CLOSE) => format!("no end: no {CONFORMER_CLOSE}"),
        Outcome::NoEos if split(text).answer.is_empty() => "no end: nothing between the tags".to_owned(),
        Outcome::NoEos => "no end".to_owned(),
        Outcome::ParseFailure => match verdict.blocks.iter().position(|block| block.junk_strict) {
            Some(at) => {
                let blocks = judged_blocks(split(text).answer, encoding);
                let block = blocks.get(at).map_or("", |block| &**block);
                let numbers = if encoding.numbers() == 1 { "a number" } else { "three numbers" };
                format!("parse failure: block {} is not {numbers}: {}", at + 1, quoted(block))
            }
            None => {
                let found = quoted(&verdict.skeleton);
                format!("parse failure: not atoms in brackets with a block each: {found}")
            }
        },
        Outcome::GraphMismatch => {
            let written = smiles(&verdict.skeleton);
            let found = quoted(&written);
            match prompt {
                // For example `[CH2]C=C`.
                Some(prompt) if same_molecule(prompt, &written, AtomLimit::default(), Isotopes::Respect) => {
                    format!(
                        "another molecule by the rules of 3DMolGen, which leave out the hydrogens of [CH2] and [CH]: {found}"
                    )
                }
                Some(prompt) => match Molecule::of_smiles(prompt) {
                    Err(why) => format!("the prompt is not a molecule: {}: {}", quoted(prompt), why.reason),
                    Ok(_) => format!("another molecule: {found}, not {}", quoted(prompt)),
                },
                None => format!("not a molecule: {found}"),
            }
        }
    }
}
