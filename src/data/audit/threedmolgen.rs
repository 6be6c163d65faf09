//! The verdict of 3DMolGen's own validation, so that their figures can be shown beside drift's.
//!
//! The code that is reproduced is in YerevaNN/3DMolGen, branch `logit_processor_and_inference_v2`, commit `65b7419`:
//! `process_batch` of `evaluation/inference.py`, `validate_smoke_outputs` of `run_logit_processor_smoke.py`, `same_molecular_graph`
//! and `extract_between` of `evaluation/utils.py`, `strip_smiles` and `decode_cartesian_v2` of `smiles_encoder_decoder.py`. Blocks
//! that are not three floats are defined by `analyze_smoke_report.py`, branch `logit_processor_smiles_gen`, commit `a486692`.
//! `docs/audit.md` compares their rules with drift's.

use std::borrow::Cow;

use super::outcome::Outcome;
use drift_core::chem::{AtomLimit, Graph, Molecule, same_canonical_smiles};
use drift_core::text::{CONFORMER_CLOSE, CONFORMER_OPEN, SMILES_CLOSE, SMILES_OPEN};

/// Tokens that their scripts remove from a decoded text.
const SPECIAL: [&str; 3] = ["<|begin_of_text|>", "<|end_of_text|>", "<|endoftext|>"];

/// The symbols that need no brackets in a SMILES.
const ORGANIC: [&str; 16] =
    ["B", "C", "N", "O", "P", "S", "F", "Cl", "Br", "I", "b", "c", "n", "o", "p", "s"];

/// Their verdict on a text, checked in their order: no conformer between the tags, another molecule than the prompt, a text that
/// cannot be decoded.
///
/// Without `prompt`, the prompt in the text is used. If there is none either, which never happens in their code, no molecules are
/// compared. Their smoke script also checks that the prompt occurs in the text literally. This holds for all texts that it
/// generates, so it is not checked here. Molecules larger than `limit` count as invalid.
pub fn judge_as_3dmolgen(prompt: Option<&str>, text: &str, limit: AtomLimit) -> Outcome {
    let text = without_special(text);
    let conformer = match between(&text, CONFORMER_OPEN, CONFORMER_CLOSE) {
        // They treat an empty conformer as missing.
        None | Some("") => return Outcome::NoEos,
        Some(conformer) => conformer,
    };
    let generated = strip_smiles(conformer);
    let same = match prompt.or_else(|| between(&text, SMILES_OPEN, SMILES_CLOSE)) {
        Some(asked) => same_canonical_smiles(rdkit_field(asked), &generated, limit),
        None => same_canonical_smiles(&generated, &generated, limit),
    };
    match (same, decodes(conformer, limit)) {
        (false, _) => Outcome::GraphMismatch,
        (true, false) => Outcome::ParseFailure,
        (true, true) => Outcome::Pass,
    }
}

/// Returns whether the text between `<` and `>` does not match their `<float,float,float>`: `-?\d+(\.\d+)?` three times.
pub(super) fn is_junk(inside: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.chars().all(is_digit);
    let number = |text: &str| {
        let text = text.strip_prefix('-').unwrap_or(text);
        text.split_once('.')
            .map_or_else(|| digits(text), |(whole, decimals)| digits(whole) && digits(decimals))
    };
    // Python's `$` also matches before a final line break.
    let inside = inside.strip_suffix('\n').unwrap_or(inside);
    inside.split(',').count() != 3 || !inside.split(',').all(number)
}

fn without_special(text: &str) -> Cow<'_, str> {
    if !SPECIAL.iter().any(|token| text.contains(token)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(SPECIAL.iter().fold(text.to_owned(), |text, token| text.replace(token, "")))
}

/// Returns the text between the first `open` and the next `close`.
fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

/// Returns the SMILES of a prompt as RDKit reads it: text behind a space is a name.
fn rdkit_field(prompt: &str) -> &str {
    prompt.split([' ', '\t']).find(|field| !field.is_empty()).unwrap_or_default()
}

/// Returns whether a character is a decimal digit of any script, as in Python's `\d` and `float` (Unicode 14).
fn is_digit(c: char) -> bool {
    const ZEROS: [u32; 66] = [
        0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6,
        0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0,
        0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30,
        0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0,
        0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec,
        0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
    ];
    // The digits of a script follow its zero.
    let place = ZEROS.partition_point(|zero| *zero <= u32::from(c));
    place > 0 && u32::from(c) - ZEROS[place - 1] < 10
}

/// Returns whether a character is white space in Python, which includes four separators that Unicode excludes.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Returns the bracket atom at the start of a text: `\[[^\]]+\]`.
fn bracket(text: &str) -> Option<&str> {
    let end = text.strip_prefix('[')?.find(']').filter(|length| *length > 0)?;
    Some(&text[..end + 2])
}

/// Their `strip_smiles`: removes white space and blocks, and undoes decorative brackets.
fn strip_smiles(conformer: &str) -> String {
    let text: String = conformer.chars().filter(|c| !is_space(*c)).collect();
    // Blocks behind atoms go first, because brackets may contain a `<`. Closing characters are not searched twice, or where there
    // is none. So texts made only of brackets take no longer than others.
    let last_block = behind_last(&text, '>');
    let mut without_block = None;
    let text = rewrite(&text, ['[', ']'], |rest| {
        if without_block.is_some_and(|behind| behind < rest.len()) {
            return None;
        }
        let atom = bracket(rest)?;
        let behind = &rest[atom.len()..];
        match Some(behind).filter(|behind| behind.len() > last_block).and_then(block) {
            Some(block) => Some((Cow::Borrowed(atom), atom.len() + block.len())),
            None => {
                without_block = Some(behind.len());
                None
            }
        }
    });
    let text = rewrite(&text, ['<', '>'], |rest| Some((Cow::Borrowed(""), block(rest)?.len())));
    rewrite(&text, ['[', ']'], |rest| {
        let atom = bracket(rest)?;
        Some((bare(&atom[1..atom.len() - 1]), atom.len()))
    })
}

/// Returns the number of bytes behind the last `close`, or of all bytes if there is none.
fn behind_last(text: &str, close: char) -> usize {
    text.rfind(close).map_or(text.len(), |at| text.len() - at - 1)
}

/// Returns the block at the start of a text: `<[^>]*>`.
fn block(text: &str) -> Option<&str> {
    text.strip_prefix('<')?;
    Some(&text[..=text.find('>')?])
}

/// Rewrites a text from left to right. At each `first` with a `last` behind it, `at` returns the replacement for the beginning of
/// the rest, and the number of bytes that it replaces.
fn rewrite<'t>(
    text: &'t str,
    [first, last]: [char; 2],
    mut at: impl FnMut(&'t str) -> Option<(Cow<'t, str>, usize)>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let behind_last = behind_last(text, last);
    let mut rest = text;
    while let Some(place) = rest.find(first) {
        out.push_str(&rest[..place]);
        rest = &rest[place..];
        let taken = match Some(rest).filter(|rest| rest.len() > behind_last).and_then(&mut at) {
            Some((new, length)) => {
                out.push_str(&new);
                length
            }
            None => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out + rest
}

/// Their spelling of an atom with this text in its brackets: `CH3` and `cH` lose their hydrogens, simple atoms lose their brackets.
fn bare(inside: &str) -> Cow<'_, str> {
    let carbon = inside.strip_prefix(['C', 'c']).and_then(|rest| rest.strip_prefix('H'));
    if carbon.is_some_and(|count| count.chars().all(is_digit)) {
        return Cow::Borrowed(&inside[..1]);
    }
    in_brackets(inside)
}

/// Returns an atom, in brackets if it needs them.
fn in_brackets(inside: &str) -> Cow<'_, str> {
    if ORGANIC.contains(&inside) { Cow::Borrowed(inside) } else { Cow::Owned(format!("[{inside}]")) }
}

/// Returns whether their `decode_cartesian_v2` returns a molecule.
fn decodes(conformer: &str, limit: AtomLimit) -> bool {
    let mut smiles = String::with_capacity(conformer.len() / 3);
    let mut at = 0;
    while at < conformer.len() {
        let Some((atom, length)) = token(&conformer[at..]) else { return false };
        match atom {
            Some((_, coordinates)) if !is_triplet(coordinates) => return false,
            Some((inside, _)) => smiles.push_str(&in_brackets(inside)),
            None => smiles.push_str(&conformer[at..at + length]),
        }
        at += length;
    }
    // Hydrogens are kept: the number of atoms must equal that of the blocks.
    limit.check(&smiles).and_then(|()| Graph::parse(&smiles)).and_then(Molecule::try_from).is_ok()
}

/// The text inside the brackets of an atom, and that inside its block.
type AtomAndBlock<'t> = (&'t str, &'t str);

/// Returns the token of their decoder at the start of a text, an atom or anything else, and its length in bytes.
fn token(text: &str) -> Option<(Option<AtomAndBlock<'_>>, usize)> {
    if let Some(atom) = bracket(text) {
        // Their pattern needs at least one character between `<` and `>`.
        let block = block(&text[atom.len()..]).filter(|block| block.len() > 2)?;
        let inside = (&atom[1..atom.len() - 1], &block[1..block.len() - 1]);
        return Some((Some(inside), atom.len() + block.len()));
    }
    let first = text.chars().next()?;
    if first == '%' {
        let digits = text[1..].chars().take_while(|c| is_digit(*c));
        let (count, length) = digits.fold((0, 1), |(count, length), c| (count + 1, length + c.len_utf8()));
        // Their pattern is `%\d{2,}`.
        return (count >= 2).then_some((None, length));
    }
    (is_digit(first) || "=#:/\\-().".contains(first)).then_some((None, first.len_utf8()))
}

/// Returns whether there are three parts between commas, each with a digit: their pattern finds a number wherever there is a digit.
fn is_triplet(inside: &str) -> bool {
    inside.split(',').count() == 3 && inside.split(',').all(|part| part.contains(is_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(prompt: &str, answer: &str) -> Outcome {
        judge_as_3dmolgen(Some(prompt), &format!("[CONFORMER]{answer}[/CONFORMER]"), AtomLimit::default())
    }

    #[test]
    fn the_last_number_of_a_part_counts() {
        for part in ["0.9587abra", "0.00000.", ".5", "1e2", "--1", "COc1.1119", "0.", " 1 ", "\u{663}", "<1"]
        {
            assert_eq!(verdict("CO", &format!("[C]<1,2,{part}>[O]<4,5,6>")), Outcome::Pass, "{part}");
        }
        for block in ["1,2", "1,2,", "1,2,x", "1,2,3,4", "", "1.0000 2.0000 3.0000"] {
            assert_eq!(verdict("CO", &format!("[C]<{block}>[O]<4,5,6>")), Outcome::ParseFailure, "{block}");
        }
    }

    #[test]
    fn texts_of_brackets_alone_are_judged_in_one_pass() {
        for text in ["[", "<", "[a]<", "[]", "[[a]", "[<", "]<", "[C]<1,2,3"] {
            let conformer = text.repeat(300_000);
            assert_ne!(verdict("C", &conformer), Outcome::Pass);
            assert_ne!(verdict("C", &format!("{conformer}]>")), Outcome::Pass);
        }
        assert_eq!(strip_smiles("[[[C]<1>[C]<2>[[N]]<"), "[[[C]C[[N]]<");
    }

    #[test]
    fn their_order_and_their_graphs() {
        use Outcome::{GraphMismatch, NoEos, ParseFailure, Pass};
        for (prompt, answer, expected) in [
            ("CO", "[C]<1,2,3>[O]<4,5,6>", Pass),
            ("OC", "[C]<1,2,3>[O]<4,5,6>", Pass),
            // Decorated carbons are bare to the comparison and as written to the decoder.
            ("CO", "[CH3]<1,2,3>[OH]<4,5,6>", Pass),
            ("CO", "[CH2]<1,2,3>[O]<4,5,6>", Pass),
            ("CO", "[CH5]<1,2,3>[O]<4,5,6>", ParseFailure),
            ("CN", "[C]<1,2,3>[O]<4,5,6>", GraphMismatch),
            ("CN", "[C]<1,2>[O]<4,5,6>", GraphMismatch),
            ("CO", "[C]<1,2,3>[O]", ParseFailure),
            ("CO", "C<1,2,3>[O]<4,5,6>", ParseFailure),
            ("CO", "[C]<1,2,3> [O]<4,5,6>", ParseFailure),
            ("CO", "[C]<1,2,3>[O]<4,5,6", GraphMismatch),
            ("C(2CC1)", "[C]<1,2,3>(2[C]<1,2,3>[C]<1,2,3>1)", GraphMismatch),
            ("CO", "", NoEos),
        ] {
            assert_eq!(verdict(prompt, answer), expected, "{prompt} {answer}");
        }
    }

    #[test]
    fn tags_and_prompts() {
        let answer = "[CONFORMER][C]<1,2,3>[O]<4,5,6>[/CONFORMER]";
        let text = format!("<|endoftext|>[SMILES]CO[/SMILES]{answer}<|endoftext|>");
        for (prompt, text, expected) in [
            (Some("CO"), &*text, Outcome::Pass),
            (None, &text, Outcome::Pass),
            (None, answer, Outcome::Pass),
            (Some("OC"), &text, Outcome::Pass),
            (Some("CN"), &text, Outcome::GraphMismatch),
            (Some("CO"), &answer.replace("[CONFORMER]", ""), Outcome::NoEos),
            (Some("CO"), "[C]<1,2,3>[O]<4,5,6>", Outcome::NoEos),
            (Some("CO"), &answer.replace("[/CONFORMER]", ""), Outcome::NoEos),
        ] {
            assert_eq!(judge_as_3dmolgen(prompt, text, AtomLimit::default()), expected, "{prompt:?} {text}");
        }
    }

    #[test]
    fn their_junk_is_stricter_than_ours_on_a_last_point() {
        assert!(!is_junk("1.5,-2,0.25"));
        for inside in ["1.5,-2,0.", "1.5,-2", "1,2,3,4", "--1,2,3", "1,2,3a", ".5,1,2", "+1,2,3"] {
            assert!(is_junk(inside), "{inside}");
        }
    }
}
