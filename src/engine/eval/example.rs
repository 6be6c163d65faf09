//! A text that shows what goes wrong.

use serde::{Deserialize, Serialize};

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExampleProblem {
    /// What is no part of a number.
    #[serde(rename = "junk")]
    Junk,
    /// A number lacks decimals, or a block numbers.
    #[serde(rename = "lost digits")]
    Lost,
    /// Digits beyond the format.
    #[serde(rename = "invented digits")]
    Invented,
    /// It did not end.
    #[serde(rename = "no end")]
    NoEnd,
    /// It is no enriched SMILES.
    #[serde(rename = "no enriched SMILES")]
    Unreadable,
    /// It is another molecule than the prompt's.
    #[serde(rename = "another molecule")]
    OtherMolecule,
    /// Nothing: it passes.
    #[serde(rename = "passes")]
    Passes,
}

impl ExampleProblem {
    /// In words, as records have it.
    pub fn name(self) -> &'static str {
        match self {
            ExampleProblem::Junk => "junk",
            ExampleProblem::Lost => "lost digits",
            ExampleProblem::Invented => "invented digits",
            ExampleProblem::NoEnd => "no end",
            ExampleProblem::Unreadable => "no enriched SMILES",
            ExampleProblem::OtherMolecule => "another molecule",
            ExampleProblem::Passes => "passes",
        }
    }
}

/// A text that shows what goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The prompt's SMILES.
    pub smiles: String,
    /// What is wrong with it.
    pub problem: ExampleProblem,
    /// The text, or the part of it around the problem.
    pub text: String,
    /// Where in `text` the problem stands, in bytes.
    pub marks: Vec<[usize; 2]>,
}
