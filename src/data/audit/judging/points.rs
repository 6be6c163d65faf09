//! The conformer of a text that passes, with its atoms in the order of the prompt.

use super::super::geometry::Conformation;
use super::super::outcome::Outcome;
use super::super::sample::{TextVerdict, coordinates, within_reach};
use drift_core::Encoding;
use drift_core::chem::{AtomLimit, atoms_in_order};
use drift_core::text::skeleton::smiles;
use drift_core::tokenizer::block_ranges;

/// Returns the conformer of a text that passes: positions `[atoms]` in Å, in the order of the prompt's skeleton. `answer` is the text
/// between the conformer tags.
///
/// If the text spells the molecule differently, its atoms are reordered by the first order in which both graphs match. `None` if
/// the text does not pass, its numbers are not coordinates, or no such order is known.
pub(crate) fn usable_points(
    answer: &str,
    verdict: &TextVerdict,
    prompt: &str,
    encoding: Encoding,
    limit: AtomLimit,
) -> Option<Conformation> {
    if verdict.outcome != Outcome::Pass {
        return None;
    }
    let points = coordinates(answer, encoding)?;
    reordered(points, &verdict.skeleton, prompt, limit)
}

/// Returns the conformer of a text that passes by the rules of 3DMolGen, read by these rules: the last number in each part of a block
/// counts, as in their `decode_cartesian_v2`. Arguments are those of [`usable_points`]. Only decimals with commas can be read this way.
pub(in crate::audit) fn points_by_3dmolgen(
    answer: &str,
    verdict: &TextVerdict,
    prompt: &str,
    limit: AtomLimit,
) -> Option<Conformation> {
    if verdict.by_3dmolgen != Outcome::Pass {
        return None;
    }
    let mut points = Conformation::new();
    for range in block_ranges(answer) {
        let mut numbers = answer[range].split(',').map(last_number);
        points.push([numbers.next()??, numbers.next()??, numbers.next()??]);
    }
    reordered(points, &verdict.skeleton, prompt, limit)
}

/// Returns the last match of their expression `[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?`, with ASCII digits only.
fn last_number(part: &str) -> Option<f64> {
    let (bytes, mut at, mut last) = (part.as_bytes(), 0, None);
    while at < bytes.len() {
        match number_length(&bytes[at..]) {
            0 => at += 1,
            length => {
                last = part.get(at..at + length);
                at += length;
            }
        }
    }
    last?.parse().ok().map(within_reach)
}

/// Returns the length in bytes of the number at the start of a text; 0 if there is none.
fn number_length(text: &[u8]) -> usize {
    let digits =
        |from: usize| text[from.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_sign = |at: usize| matches!(text.get(at), Some(b'-' | b'+'));
    let start = usize::from(is_sign(0));
    let whole = digits(start);
    let mut end = start + whole;
    if text.get(end) == Some(&b'.') && (whole > 0 || digits(end + 1) > 0) {
        end += 1 + digits(end + 1);
    } else if whole == 0 {
        return 0;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(is_sign(end + 1));
        let power = digits(end + 1 + sign);
        // An `e` without digits behind it does not belong to the number.
        end += if power > 0 { 1 + sign + power } else { 0 };
    }
    end
}

/// Reorders atoms from the order of one skeleton to that of another. Equal skeletons change nothing; `None` if the graphs do not
/// match.
pub(crate) fn reordered(
    points: Conformation,
    from: &str,
    to: &str,
    limit: AtomLimit,
) -> Option<Conformation> {
    if from == to {
        return Some(points);
    }
    let order = atoms_in_order(&smiles(from), &smiles(to), limit)?;
    order.into_iter().map(|atom| points.get(atom).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_a_part_is_theirs() {
        // Python: [m.group(0) for m in re.finditer(...)][-1]
        for (part, number) in [
            ("0.9587abra", Some(0.9587)),
            ("0.00000.", Some(0.0)),
            (".5", Some(0.5)),
            ("1e2", Some(100.0)),
            ("--1", Some(-1.0)),
            ("COc1.1119", Some(1.1119)),
            ("1.5e", Some(1.5)),
            ("3-4", Some(-4.0)),
            ("1.2.3", Some(0.3)),
            ("abra", None),
            (".", None),
        ] {
            assert_eq!(last_number(part), number, "{part}");
        }
    }
}
