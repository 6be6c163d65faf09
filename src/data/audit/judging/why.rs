//! Why a text does not pass, in words.

use super::super::outcome::Outcome;
use super::super::sample::{TextVerdict, split};
use drift_core::error::{one_line, shortened_end};
use drift_core::text::skeleton::smiles;
use drift_core::text::{CONFORMER_CLOSE, CONFORMER_OPEN};
use drift_core::tokenizer::block_ranges;

/// Characters of a text that are quoted.
const QUOTED: usize = 60;

/// Why a tagged text does not pass; empty if it does.
pub(in crate::audit) fn why(text: &str, verdict: &TextVerdict, prompt: Option<&str>) -> String {
    let quoted = |text: &str| shortened_end(&one_line(text), QUOTED);
    match verdict.outcome {
        Outcome::Pass => String::new(),
        Outcome::NoEos if !text.contains(CONFORMER_OPEN) => format!("no end: no {CONFORMER_OPEN}"),
        Outcome::NoEos if !text.contains(CONFORMER_CLOSE) => format!("no end: no {CONFORMER_CLOSE}"),
        Outcome::NoEos if split(text).answer.is_empty() => "no end: nothing between the tags".to_owned(),
        Outcome::NoEos => "no end".to_owned(),
        Outcome::ParseFailure => {
            let answer = split(text).answer;
            let junk = verdict.blocks.iter().zip(block_ranges(answer)).enumerate();
            let first = junk.into_iter().find(|(_, (block, _))| block.junk_strict);
            match first {
                Some((at, (_, range))) => {
                    format!(
                        "parse failure: block {} is not three numbers: {}",
                        at + 1,
                        quoted(&answer[range])
                    )
                }
                None => {
                    let found = quoted(&verdict.skeleton);
                    format!("parse failure: not atoms in brackets with a block each: {found}")
                }
            }
        }
        Outcome::GraphMismatch => {
            let found = quoted(&smiles(&verdict.skeleton));
            match prompt {
                Some(prompt) => format!("another molecule: {found}, not {}", quoted(prompt)),
                None => format!("not a molecule: {found}"),
            }
        }
    }
}
