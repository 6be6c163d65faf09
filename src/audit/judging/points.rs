//! The conformer of a text that passes, with its atoms in the order of its prompt.

use super::super::geometry::Conformation;
use super::super::outcome::Outcome;
use super::super::sample::{TextVerdict, coordinates};
use crate::chem::{AtomLimit, atoms_in_order};
use crate::encoding::Encoding;
use crate::text::skeleton::smiles;

/// The conformer of a text that passes, `[atoms]` in Å, atoms in the order of the prompt's skeleton. `answer` is what stands between the
/// conformer tags.
///
/// A text that spells the molecule otherwise has its atoms put in the order of the prompt: the first in which both are one graph. `None`
/// if the text does not pass, its numbers are no coordinates, or no such order is known.
pub fn usable_points(
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
    if verdict.skeleton == prompt {
        Some(points)
    } else {
        reordered(&points, &verdict.skeleton, prompt, limit)
    }
}

/// Atoms in the order of one skeleton, put in that of another one.
pub(in crate::audit) fn reordered(
    points: &[[f64; 3]],
    from: &str,
    to: &str,
    limit: AtomLimit,
) -> Option<Conformation> {
    let order = atoms_in_order(&smiles(from), &smiles(to), limit)?;
    order.into_iter().map(|atom| points.get(atom).copied()).collect()
}
