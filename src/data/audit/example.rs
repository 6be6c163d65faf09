//! Texts that show typical problems.

use serde::{Deserialize, Serialize};

/// The problem of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExampleProblem {
    /// Text that is not part of a number.
    #[serde(rename = "junk")]
    Junk,
    /// A number with too few decimals, or a block with too few numbers.
    #[serde(rename = "lost digits")]
    Lost,
    /// Digits beyond the format.
    #[serde(rename = "invented digits")]
    Invented,
    /// The text did not end.
    #[serde(rename = "no end")]
    NoEnd,
    /// The text is not enriched SMILES.
    #[serde(rename = "no enriched SMILES")]
    Unreadable,
    /// The text is another molecule than the prompt's.
    #[serde(rename = "another molecule")]
    OtherMolecule,
    /// No problem: the text passes.
    #[serde(rename = "passes")]
    Passes,
}

drift_core::named!(ExampleProblem {
    Junk: "junk",
    Lost: "lost digits",
    Invented: "invented digits",
    NoEnd: "no end",
    Unreadable: "no enriched SMILES",
    OtherMolecule: "another molecule",
    Passes: "passes"
});

/// A text that shows a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The prompt's SMILES.
    pub smiles: String,
    /// The problem of the text.
    pub problem: ExampleProblem,
    /// The text, or the part of it around the problem.
    pub text: String,
    /// The byte ranges in `text` where the problem is.
    pub marks: Vec<[usize; 2]>,
}
