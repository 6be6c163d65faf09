//! The statement of a certificate in words: over which data, in which order, with which tolerance, and the effects that replay does
//! not see.

use super::attainable::AttainableTokens;
use super::certificate::Certificate;
use super::counts::ReplayCounts;
use super::objective::Objective;
use super::report::Conditions;

/// Returns the statement that was proved about the chosen placeholder, or the reason why nothing was proved.
pub(super) fn statement(
    counts: &ReplayCounts,
    objective: &Objective,
    certificate: Option<&Certificate>,
    attainable: &AttainableTokens,
    conditions: &Conditions,
) -> String {
    let data = format!("in replay of {} blocks of {} conformers", counts.blocks(), counts.conformers);
    let Some(certificate) = certificate else {
        let broken = conditions.broken.as_deref().unwrap_or("a condition does not hold");
        return format!("The least harm that was found {data}; not proved: {broken}.");
    };
    let order = order(objective);
    let unseen =
        "Replay does not see what a model makes of junk or of its own clipped numbers: `drift eval` does.";
    let Some(proof) = &certificate.proof else {
        return format!(
            "No number of FREE tokens, so no placeholder at all, does less harm {data}, by {order}. {unseen}"
        );
    };
    // A candidate need not be of the encoding, so it is named in addition to the strings that were counted.
    let who = if attainable.proved {
        "No three numbers of the dialect, and no candidate, do less harm"
    } else {
        "The least harm that was found"
    };
    format!("{who} {data}, by {order}: {proof}. {unseen}")
}

fn order(objective: &Objective) -> String {
    match objective {
        Objective::Lexicographic { tolerance_angstrom } => format!(
            "unparsable blocks first, then induced RMSD above {tolerance_angstrom} Å, then junk slots (truncated blocks \
             count through their RMSD alone)"
        ),
        Objective::Weighted { tolerance_angstrom, weights: [u, r, j] } => format!(
            "the sum of {u} x unparsable blocks, {r} x induced RMSD above {tolerance_angstrom} Å and {j} x junk slots"
        ),
    }
}
