//! Enriched SMILES: a SMILES in which each atom is followed by a slot with its coordinates, `<x,y,z>`.
//!
//! - [`parse`] splits a text into its *skeleton* (the text with every slot replaced by `<>`, whatever its brackets) and its
//!   coordinates; [`write()`] is the inverse. An [`Encoding`](crate::encoding::Encoding) defines the form of slots.
//! - [`skeleton`] holds operations without coordinates. The molecule of a skeleton is the subject of [`crate::chem`].
//! - [`containment`] decides which strings occur in no text.
//! - [`partition`] classifies slots by the skeleton; [`size`] is the table of size classes.
//!
//! The format is that of 3DMolGen: heavy atoms only, bare atoms bracketed, decimals (four, by default)
//! truncated toward zero.

pub mod containment;
pub mod enriched;
pub mod partition;
pub mod size;
pub mod skeleton;

pub use enriched::{EnrichedText, TextError, append, parse, write};

use std::ops::Range;

use crate::encoding::Encoding;

/// The tag before a conformer's text.
pub const CONFORMER_OPEN: &str = "[CONFORMER]";
/// The tag after a conformer's text.
pub const CONFORMER_CLOSE: &str = "[/CONFORMER]";
/// The tag before a prompt's SMILES.
pub const SMILES_OPEN: &str = "[SMILES]";
/// The tag after a prompt's SMILES.
pub const SMILES_CLOSE: &str = "[/SMILES]";

/// Returns the prompt of a molecule.
pub fn prompt(smiles: &str) -> String {
    format!("{SMILES_OPEN}{smiles}{SMILES_CLOSE}")
}

/// `text` between the conformer tags, as a model generates it.
pub fn tagged(text: &str) -> String {
    format!("{CONFORMER_OPEN}{text}{CONFORMER_CLOSE}")
}

/// Returns the byte ranges of the contents of a whole text's slots, in order. A prompt, from `[SMILES]` to `[/SMILES]`, has none,
/// although its ring closures can look like slots of an encoding without brackets (`[C@H]1CN1`).
pub fn slot_ranges(text: &str, encoding: Encoding) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let answer = at..text[at..].find(SMILES_OPEN).map_or(text.len(), |found| at + found);
        let slots = encoding.slot_ranges(&text[answer.clone()]);
        ranges.extend(slots.into_iter().map(|slot| answer.start + slot.start..answer.start + slot.end));
        at = answer.end + prompt_length(&text[answer.end..]);
    }
    ranges
}

/// Returns the length of the prompt at the beginning of a text. A prompt that is not closed ends where a conformer begins.
fn prompt_length(text: &str) -> usize {
    let closed = text.find(SMILES_CLOSE).map(|at| at + SMILES_CLOSE.len());
    closed.or_else(|| text.find(CONFORMER_OPEN)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_have_no_slots() {
        let slots = |text: &str, encoding: &str| -> Vec<String> {
            let ranges = slot_ranges(text, encoding.parse().unwrap());
            ranges.into_iter().map(|range| text[range].to_owned()).collect()
        };
        let bins = "binned-v2:-13,13,0.104";
        let answer = "[CONFORMER][C]140126111;[C@H]130120110;1[C]100101102;[N]100101103;1[/CONFORMER]";
        let own = slots(answer, bins);
        assert_eq!(own.len(), 4);
        for prompt in
            ["[SMILES]C[C@H]1CN1[/SMILES]", "[SMILES][C@H]1CN1;[O-]1[N+]2;2[/SMILES]", "[SMILES]C[C@H]1CN1"]
        {
            assert_eq!(slots(&format!("{prompt}{answer}"), bins), own, "{prompt}");
            assert_eq!(slots(prompt, bins), [""; 0], "{prompt}");
            // Several documents in a row.
            let twice = format!("{prompt}{answer}{prompt}{answer}");
            assert_eq!(slots(&twice, bins), [own.clone(), own.clone()].concat(), "{prompt}");
        }
        let fixed = "[SMILES]CC=O[/SMILES][CONFORMER][C]<1.0000,2.0000,3.0000>[/CONFORMER]";
        assert_eq!(slots(fixed, "fixed"), ["1.0000,2.0000,3.0000"]);
        assert_eq!(slots("", "fixed"), [""; 0]);
    }
}
