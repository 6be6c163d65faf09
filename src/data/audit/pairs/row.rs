//! The texts of a row, as far as rows are compared by them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::coverage::Deviations;
use super::super::outcome::Outcome;
use super::super::row_label::RowLabel;
use super::super::sample::TextVerdict;
use super::speed::BatchTimes;

/// A row: the texts of one model under one logit processor.
#[derive(Debug)]
pub struct ComparedRow<'r> {
    /// What is known of the row.
    pub label: RowLabel,
    /// Its texts, ascending by [`PairedText::key`].
    pub texts: Vec<PairedText<'r>>,
    /// The deviations of the usable texts from the references, by molecule.
    pub deviations: BTreeMap<usize, &'r Deviations>,
    /// The time of each batch; empty if it is not known.
    pub times: BatchTimes,
    /// The texts per CPU second over the whole row, if that is known.
    pub texts_per_cpu_second: Option<f64>,
    /// The texts per second of wall time over the whole row, if that is known.
    pub texts_per_second: Option<f64>,
}

/// One text of a row.
#[derive(Debug, Clone, Copy)]
pub struct PairedText<'r> {
    /// The number of the molecule under which its geometry is measured. Molecules of all rows share their numbers.
    pub molecule: usize,
    /// The number of its prompt; several prompts may belong to one molecule.
    pub prompt: usize,
    /// The index of the text among those of its prompt.
    pub generation: u64,
    /// The index among the conformers of its text.
    pub place: usize,
    /// The index of its conformer in the deviations of its molecule; `None` if it is not usable, or there are no references.
    pub conformer: Option<usize>,
    /// What was counted in it.
    pub counts: TextCounts,
    /// The text itself.
    pub text: &'r str,
}

impl PairedText<'_> {
    /// Returns what texts of two rows have in common if they are compared. Texts of a molecule are adjacent in its order.
    pub fn key(&self) -> (usize, usize, u64, usize) {
        (self.molecule, self.prompt, self.generation, self.place)
    }

    /// Returns whether the text is the prompt's molecule with three numbers in every block.
    pub fn passed(&self) -> bool {
        self.counts.outcome == Outcome::Pass
    }
}

/// The counts of one text by which rows are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextCounts {
    /// The outcome.
    pub outcome: Outcome,
    /// Whether its skeleton is the prompt's, character by character, and no block has a flaw.
    pub is_well_formed: bool,
    /// The number of blocks.
    pub blocks: u64,
    /// Of these, the number that are not three numbers.
    pub junk: u64,
    /// The number that lost digits; `None` if a text of the encoding does not show it.
    pub truncated: Option<u64>,
    /// The number with invented digits.
    pub invented: u64,
    /// Whether it breaks no rule of chemistry; `None` if its chemistry was not checked, as for a text that does not pass.
    #[serde(default)]
    pub valid: Option<bool>,
}

impl TextCounts {
    /// Returns the counts of a verdict. `is_well_formed` and `valid`: as in the fields.
    pub(crate) fn from_verdict(verdict: &TextVerdict, is_well_formed: bool, valid: Option<bool>) -> Self {
        let blocks = &verdict.blocks;
        let is_known = blocks.iter().all(|block| block.truncated.is_some());
        let truncated = blocks.iter().filter(|block| block.truncated == Some(true)).count() as u64;
        TextCounts {
            outcome: verdict.outcome,
            is_well_formed,
            blocks: blocks.len() as u64,
            junk: blocks.iter().filter(|block| block.junk_strict).count() as u64,
            truncated: is_known.then_some(truncated),
            invented: blocks.iter().filter(|block| block.invented).count() as u64,
            valid,
        }
    }
}
