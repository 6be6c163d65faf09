//! The outcome of a generated text.

use serde::{Deserialize, Serialize};

/// The outcome of a sample: the first of these that applies, in this order.
///
/// 3DMolGen's own validation has the same four outcomes, but checks for another molecule before it checks the blocks; see
/// [`super::judge_as_3dmolgen`] and `docs/audit.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    #[default]
    /// The text did not end, has nothing between its conformer tags, or has no such tags.
    NoEos,
    /// An atom without a block, a block without an atom, a block that is not exactly three numbers, an unmatched bracket, or a
    /// character that may not occur between atoms.
    ParseFailure,
    /// A different molecular graph than the prompt's, or one that RDKit would refuse. Stereo and isotopes are ignored.
    GraphMismatch,
    /// The prompt's molecule, with numbers behind every atom. It passes 3DMolGen's validation too.
    Pass,
}
