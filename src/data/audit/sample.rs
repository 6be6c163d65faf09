//! Judges one generated text against its prompt.

use std::borrow::Cow;

use super::block::{BlockVerdict, judge_block};
use super::outcome::Outcome;
use super::threedmolgen::judge_as_3dmolgen;
use drift_core::Encoding;
use drift_core::chem::{AtomLimit, Isotopes, same_molecule};
use drift_core::encoding::{Fixed, Precision, Reading, is_three_numbers};
use drift_core::text::enriched::in_brackets;
use drift_core::text::skeleton::{self, smiles};
use drift_core::text::{CONFORMER_CLOSE, CONFORMER_OPEN, SMILES_CLOSE, SMILES_OPEN, parse};
use drift_core::tokenizer::block_ranges;

/// A generated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextSample<'a> {
    /// The SMILES of the prompt. Without it, graphs are not compared.
    pub prompt: Option<&'a str>,
    /// The generated text, tags included; it may also contain the prompt.
    pub answer: &'a str,
    /// Whether generation ended by itself.
    pub ended: bool,
    /// The encoding in which numbers should be written.
    pub encoding: Encoding,
    /// The size limit for molecules that are compared. A larger one equals no other molecule.
    pub max_atoms: AtomLimit,
    /// Whether isotope labels tell molecules apart.
    pub isotopes: Isotopes,
}

/// The results for a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextVerdict {
    /// Its outcome.
    pub outcome: Outcome,
    /// Its outcome by the rules of 3DMolGen.
    pub by_3dmolgen: Outcome,
    /// The text with its blocks emptied.
    pub skeleton: String,
    /// The verdict on each block, in text order.
    pub blocks: Vec<BlockVerdict>,
}

/// The prompt and the answer in one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split<'a> {
    /// The text between the SMILES tags.
    pub prompt: Option<&'a str>,
    /// The text between the conformer tags, or up to the end if there is no closing tag.
    pub answer: &'a str,
    /// Whether there is a closing tag, or no tag at all.
    pub ended: bool,
}

/// Removes tags, and the text around them.
pub fn split(text: &str) -> Split<'_> {
    let (prompt, rest) =
        match text.split_once(SMILES_OPEN).and_then(|(_, rest)| rest.split_once(SMILES_CLOSE)) {
            Some((prompt, rest)) => (Some(prompt), rest),
            None => (None, text),
        };
    let opened = rest.split_once(CONFORMER_OPEN);
    let rest = opened.map_or(rest, |(_, rest)| rest);
    let (answer, closed) = match rest.split_once(CONFORMER_CLOSE) {
        Some((answer, _)) => (answer, true),
        None => (rest, false),
    };
    // A text without any tags counts as ended.
    let untagged = prompt.is_none() && opened.is_none();
    Split { prompt, answer: answer.trim(), ended: closed || untagged }
}

/// Judges a sample.
pub fn judge(sample: &TextSample<'_>) -> TextVerdict {
    let body = split(sample.answer).answer;
    let answer = &*bracketed(body, sample.encoding);
    let ranges = block_ranges(answer);
    let written = sample.encoding.bracketed();
    let blocks: Vec<BlockVerdict> =
        ranges.iter().map(|range| judge_block(&answer[range.clone()], written)).collect();
    let mut skeleton = String::with_capacity(answer.len() / 3);
    let mut copied = 0;
    for range in &ranges {
        skeleton.push_str(&answer[copied..range.start]);
        copied = range.end;
    }
    skeleton.push_str(&answer[copied..]);
    let theirs = with_commas(sample.answer, (body, answer), sample.encoding);
    let by_3dmolgen = judge_as_3dmolgen(sample.prompt, &theirs, sample.max_atoms);
    let malformed = blocks.iter().any(|block| block.junk_strict) || !is_skeleton(&skeleton);
    // The first that applies counts. A text passes only if it also passes by 3DMolGen's rules.
    let outcome = if !sample.ended || by_3dmolgen == Outcome::NoEos {
        Outcome::NoEos
    } else if malformed || by_3dmolgen == Outcome::ParseFailure {
        Outcome::ParseFailure
    } else if by_3dmolgen == Outcome::Pass && is_asked_for(sample, &skeleton) {
        Outcome::Pass
    } else {
        Outcome::GraphMismatch
    };
    TextVerdict { outcome, by_3dmolgen, skeleton, blocks }
}

/// Returns the contents of the blocks that [`judge`] judges, in order, with the encoding's own separators.
pub(super) fn judged_blocks(answer: &str, encoding: Encoding) -> Vec<String> {
    // Located in the bracketed form: in the original form, slots behind symbols and junk would be counted differently.
    let answer = &*bracketed(answer, encoding);
    let own = |block: &str| match (encoding.is_bracketed(), encoding.numbers()) {
        (true, _) => block.to_owned(),
        (false, 1) => block.strip_suffix(",0,0").unwrap_or(block).to_owned(),
        (false, _) => block.replace(',', encoding.separator()),
    };
    block_ranges(answer).into_iter().map(|range| own(&answer[range])).collect()
}

/// Returns an answer with its slots written as by [`Encoding::bracketed`]. Text that is not a slot stays unchanged.
fn bracketed(answer: &str, encoding: Encoding) -> Cow<'_, str> {
    if encoding.is_bracketed() {
        return Cow::Borrowed(answer);
    }
    Cow::Owned(in_brackets(answer, encoding))
}

/// Returns an answer in 3DMolGen's form: with commas in its blocks, whatever the encoding's separator. The text between its tags is also
/// [`bracketed`].
fn with_commas<'a>(answer: &'a str, (body, bracketed): (&str, &str), encoding: Encoding) -> Cow<'a, str> {
    if !encoding.is_bracketed() {
        // Only the text between the tags is rewritten.
        let Some((before, behind)) = answer.split_once(body) else { return Cow::Borrowed(answer) };
        // White space that closes the last slot does not belong to the text behind it.
        let closes = encoding.close().ends_with(|c: char| c.is_ascii_whitespace());
        let behind = if closes { behind.trim_start() } else { behind };
        return Cow::Owned([before, bracketed, behind].concat());
    }
    if encoding.separator() == "," {
        return Cow::Borrowed(answer);
    }
    let mut out = answer.to_owned();
    for range in block_ranges(answer) {
        let inside = answer[range.clone()].replace(encoding.separator(), ",");
        out.replace_range(range, &inside);
    }
    Cow::Owned(out)
}

/// Returns whether a skeleton consists only of atoms in brackets, each with a block, and of bonds, parentheses, ring numbers and dots.
fn is_skeleton(skeleton: &str) -> bool {
    let mut rest = skeleton;
    while let Some(place) = rest.find(|c: char| !(c.is_ascii_digit() || "=#:/\\-()%.".contains(c))) {
        let atom = rest[place..].strip_prefix('[').and_then(|rest| rest.split_once(']'));
        match atom.and_then(|(inside, rest)| Some((inside, rest.strip_prefix("<>")?))) {
            Some((inside, behind)) if !inside.contains(['[', '<', '>']) => rest = behind,
            _ => return false,
        }
    }
    !skeleton.is_empty()
}

/// Returns whether the molecule of a skeleton, including its written hydrogens, is that of the prompt. Without a prompt, any valid
/// molecule is accepted.
fn is_asked_for(sample: &TextSample<'_>, skeleton: &str) -> bool {
    let generated = smiles(skeleton);
    same_molecule(sample.prompt.unwrap_or(&generated), &generated, sample.max_atoms, sample.isotopes)
}

/// Returns the coordinates of an answer that passes, in Å. Numbers are read as by [`judge`]: `0.` is 0.
///
/// `None` if some block is not three numbers of the encoding, or the numbers are codes. A larger number than [`FARTHEST`] counts as this
/// one.
pub fn coordinates(answer: &str, encoding: Encoding) -> Option<Vec<[f64; 3]>> {
    let answer = split(answer).answer;
    if !encoding.is_decimal() {
        let parsed = parse(answer, Reading::new(encoding)).ok()?;
        return parsed.coordinates.iter().map(|values| encoding.angstrom(values)).collect();
    }
    let answer = &*bracketed(answer, encoding);
    let separator = encoding.bracketed().separator();
    let mut all = Vec::new();
    for range in block_ranges(answer) {
        let inside = &answer[range];
        if !is_three_numbers(inside, separator) {
            return None;
        }
        let parts = inside.split(separator);
        let mut numbers = parts.map(|part| part.trim_end_matches('.').parse().ok().map(within_reach));
        all.push([numbers.next()??, numbers.next()??, numbers.next()??]);
    }
    Some(all)
}

/// The largest coordinate of a text, in Å, as of conformers. The squares of larger ones could be infinite, and so the text at no
/// distance from any reference.
pub(crate) const FARTHEST: f64 =
    Precision::FOUR.max_fixed() as f64 / Precision::FOUR.units_per_angstrom() as f64;

/// Returns a coordinate, or the largest one with its sign.
pub(super) fn within_reach(angstrom: f64) -> f64 {
    angstrom.clamp(-FARTHEST, FARTHEST)
}

/// Converts values of an encoding to Å; codes have no coordinates and are dropped.
pub fn in_angstrom(coordinates: &[[Fixed; 3]], encoding: Encoding) -> Vec<[f64; 3]> {
    coordinates.iter().filter_map(|values| encoding.angstrom(values)).collect()
}

impl TextVerdict {
    /// Returns the SMILES under which the text is judged: its prompt's, or without a prompt that of its own skeleton; `None` if it has no
    /// prompt and is not a valid text.
    pub(super) fn smiles<'p>(&self, prompt: Option<&'p str>) -> Option<Cow<'p, str>> {
        let own = || (self.outcome == Outcome::Pass).then(|| smiles(&self.skeleton));
        let own = || own().filter(|smiles| skeleton::check(smiles).is_ok()).map(Cow::Owned);
        prompt.map(Cow::Borrowed).or_else(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_coordinate_is_infinite() {
        let read = |number: &str| {
            coordinates(&format!("[C]<{number},-{number},0.0000>"), Encoding::FIXED).unwrap()[0]
        };
        assert_eq!(read("99999.9999"), [FARTHEST, -FARTHEST, 0.0]);
        assert_eq!(read(&format!("1{}.0000", "0".repeat(400))), [FARTHEST, -FARTHEST, 0.0]);
        assert_eq!(read("1.5000"), [1.5, -1.5, 0.0]);
    }

    fn outcome(prompt: &str, answer: &str, ended: bool) -> Outcome {
        judge(&TextSample {
            prompt: Some(prompt),
            answer,
            ended,
            encoding: Encoding::FIXED,
            max_atoms: AtomLimit::default(),
            isotopes: Isotopes::Ignore,
        })
        .outcome
    }

    #[test]
    fn outcomes_in_their_order() {
        let good = "[CONFORMER][C]<1.0000,2.0000,3.0000>[O]<4.0000,5.0000,6.0000>[/CONFORMER]";
        assert_eq!(outcome("CO", good, true), Outcome::Pass);
        assert_eq!(outcome("OC", good, true), Outcome::Pass);
        assert_eq!(outcome("CN", good, true), Outcome::GraphMismatch);
        assert_eq!(outcome("CO", good, false), Outcome::NoEos);
        for untagged in ["", "[C]<1,2,3>[O]<4,5,6>", "[CONFORMER][/CONFORMER]"] {
            assert_eq!(outcome("CO", untagged, true), Outcome::NoEos, "{untagged}");
        }
        assert_eq!(outcome("CO", &good.replace("[/CONFORMER]", ""), true), Outcome::NoEos);
        assert_eq!(outcome("CO", &good.replace("[CONFORMER]", ""), true), Outcome::NoEos);
        for (answer, expected) in [
            ("[C]<1.0,2.0>[O]<4.0,5.0,6.0>", Outcome::ParseFailure),
            ("[C]<1,2,3>[O]<4,5,6", Outcome::ParseFailure),
            // An atom without a block, a block without an atom, letters without brackets.
            ("[C]<0,0,0>[O]", Outcome::ParseFailure),
            ("[C]<0,0,0><0,0,0>", Outcome::ParseFailure),
            ("C<0,0,0>O<0,0,0>", Outcome::ParseFailure),
            ("<0,0,0>", Outcome::ParseFailure),
            ("[C]<1,2,3> [O]<4,5,6>", Outcome::ParseFailure),
            // No SMILES at all is another graph, and so is what RDKit would refuse.
            ("[C]<1,2,3>[O]<4,5,6>(", Outcome::GraphMismatch),
            ("[CH5]<1,2,3>[O]<4,5,6>", Outcome::ParseFailure),
            // Their comparison takes the hydrogens off carbon; the molecule that is written is a radical.
            ("[CH2]<1,2,3>[O]<4,5,6>", Outcome::GraphMismatch),
            ("[CH3]<1,2,3>[OH]<4,5,6>", Outcome::Pass),
        ] {
            assert_eq!(
                outcome("CO", &format!("[CONFORMER]{answer}[/CONFORMER]"), true),
                expected,
                "{answer}"
            );
        }
    }

    #[test]
    fn molecules_that_rdkit_refuses_never_pass() {
        for smiles in ["C(2CC1)", "C(N=)", "C(C)(C)(C)(C)C", "c1cccc1"] {
            let written =
                smiles.replace('C', "[C]<1,2,3>").replace('N', "[N]<1,2,3>").replace('c', "[c]<1,2,3>");
            let answer = format!("[CONFORMER]{written}[/CONFORMER]");
            assert_eq!(outcome(smiles, &answer, true), Outcome::GraphMismatch, "{smiles}");
        }
    }

    #[test]
    fn texts_are_split_at_their_tags() {
        let text = "<|pad|>[SMILES]CO[/SMILES][CONFORMER][C]<1,2,3>[O]<4,5,6>[/CONFORMER]<|endoftext|>";
        let expected = Split { prompt: Some("CO"), answer: "[C]<1,2,3>[O]<4,5,6>", ended: true };
        assert_eq!(split(text), expected);
        assert_eq!(
            split("[SMILES]CO[/SMILES][CONFORMER][C]<1,2"),
            Split { answer: "[C]<1,2", ended: false, ..expected }
        );
        assert_eq!(split("[C]<1,2,3>"), Split { prompt: None, answer: "[C]<1,2,3>", ended: true });
        assert!(!split("[CONFORMER][C]<1,2,3>").ended);
    }

    #[test]
    fn coordinates_are_read_as_judged() {
        assert_eq!(coordinates("[C]<1.5,-2,0.>", Encoding::STRIPPED).unwrap(), [[1.5, -2.0, 0.0]]);
        assert_eq!(coordinates("[C]<1.5,-2>", Encoding::STRIPPED), None);
        assert_eq!(in_angstrom(&[[10_000, -5, 0]], Encoding::FIXED), [[1.0, -0.0005, 0.0]]);
    }
}
