//! What became of a generated text.

use serde::{Deserialize, Serialize};

/// What became of a sample: the first of these that holds, in this order.
///
/// 3DMolGen's own validation has the same four, but looks for another molecule before it looks at blocks; see
/// [`super::judge_as_3dmolgen`] and `docs/audit.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    #[default]
    /// The text did not end, or has nothing between its conformer tags, or no such tags.
    NoEos,
    /// An atom without a block or a block without an atom, a block that is not exactly three numbers, a bracket that is left
    /// over, or a character that has no place between atoms.
    ParseFailure,
    /// Another molecular graph than the prompt's, or none that RDKit would take; stereo and isotopes are ignored.
    GraphMismatch,
    /// The prompt's molecule, with three numbers behind every atom. Passes 3DMolGen's validation too.
    Pass,
}
