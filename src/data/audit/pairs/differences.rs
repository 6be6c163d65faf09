//! The comparisons between runs in a record.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::super::row_label::RowLabel;
pub use crate::generation::SpeedMeasure;
use crate::stats::Interval;
use crate::stats::bootstrap::Mean;

/// A row compared with the base row, on the same molecules and generations: in an evaluation with the one of the same model without a
/// logit processor, with the same random numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairedComparison {
    /// The row.
    #[serde(flatten)]
    pub row: RowLabel,
    /// The number of texts of either row without a partner in the other, which are in no pair.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unpaired: u64,
    /// The number of texts that passed in this run minus the number that passed without; if one of them has fewer texts, of those in pairs.
    pub passed_difference: i64,
    /// The number of texts whose skeleton the model copied exactly without a logit processor, with every block well formed.
    pub well_formed_without: u64,
    /// The number of these texts that are identical in both runs.
    pub identical: u64,
    /// The bond-length error of this run minus the one without, in Å, over the molecules whose texts passed without; paired.
    pub bond_error_difference_angstrom: Option<Mean>,
    /// MAT-P of this run minus the one without, in Å, paired in the same way.
    pub mat_precision_difference_angstrom: Option<Mean>,
    /// MAT-R of this run minus the one without, in Å, paired in the same way.
    pub mat_recall_difference_angstrom: Option<Mean>,
    /// The ratio of texts per CPU second in this run to those without, so that other load on the machine has little effect.
    /// Wall-clock seconds are used if CPU seconds are not known; null if no time is known.
    pub speed_ratio: Option<f64>,
    /// How many times as fast this run was as the one without, with its interval, over the batches of both.
    #[serde(default)]
    pub speed: Option<SpeedRatio>,
    /// The number of rows that are compared with the run without on this model. The intervals of `figures`, `rescued` and `speed`
    /// are corrected for this number (Bonferroni), the others are not.
    #[serde(default)]
    pub rows: usize,
    /// Every figure with and without, over the texts that both runs contain.
    #[serde(default)]
    pub figures: Vec<FigureDifference>,
    /// The share of valid texts beside that of the automaton on the same model instead of the base row; left out if there is no such
    /// row, or it is this row or the base. Its interval is corrected like those of `figures`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_against_automaton: Option<FigureDifference>,
    /// The texts that pass in this run but not without, compared with texts of the same molecule that pass in both runs.
    #[serde(default)]
    pub rescued: Option<RescuedTexts>,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// How many times as fast one run is as another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpeedRatio {
    /// The seconds of the other run divided by the seconds of this run, over the batches of both.
    pub ratio: f64,
    /// The interval of the ratio; `None` with fewer than two batches.
    pub interval: Option<Interval>,
    /// The number of batches.
    pub batches: usize,
    /// How the seconds are measured.
    pub measure: SpeedMeasure,
}

/// A figure by which runs are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedFigure {
    /// The share of texts that pass.
    Passed,
    /// The share of texts that are valid.
    Valid,
    /// The share of texts of another molecule than the prompt's.
    GraphMismatch,
    /// The share of texts that are not enriched SMILES, or contain a block that is not three numbers.
    ParseFailures,
    /// The share of texts that did not end.
    NoEos,
    /// The share of blocks that are not three numbers.
    JunkBlocks,
    /// The share of blocks that lost digits.
    TruncatedBlocks,
    /// The share of blocks with invented digits.
    InventedBlocks,
    /// The bond-length error, in Å, over texts that are usable in both runs.
    BondLengthError,
    /// MAT-P, in Å, over texts that are usable in both runs.
    MatPrecision,
    /// MAT-R, in Å, over texts that are usable in both runs.
    MatRecall,
    /// COV-P at 0.75 Å, over texts that are usable in both runs.
    CovPrecision,
    /// COV-R at 0.75 Å, over texts that are usable in both runs.
    CovRecall,
}

impl FigureDifference {
    /// Returns in which direction the figure changes by more than `least`, by its interval; `None` if that may be chance.
    pub(super) fn change(&self, least: f64) -> Option<Ordering> {
        let Interval { low, high } = self.interval?;
        if low > least { Some(Ordering::Greater) } else { (high < -least).then_some(Ordering::Less) }
    }
}

drift_core::named!(ComparedFigure {
    Passed: "texts that pass",
    Valid: "valid texts",
    GraphMismatch: "texts of another molecule",
    ParseFailures: "texts that do not parse",
    NoEos: "texts without end",
    JunkBlocks: "junk blocks",
    TruncatedBlocks: "blocks that lose digits",
    InventedBlocks: "blocks with invented digits",
    BondLengthError: "bond-length error",
    MatPrecision: "MAT-P",
    MatRecall: "MAT-R",
    CovPrecision: "COV-P",
    CovRecall: "COV-R"
});

impl ComparedFigure {
    /// Returns whether larger values are better.
    pub(crate) fn more_is_better(self) -> bool {
        use ComparedFigure::{CovPrecision, CovRecall, Passed, Valid};
        matches!(self, Passed | Valid | CovPrecision | CovRecall)
    }

    /// Returns whether the figure is a length in Å rather than a share.
    pub(crate) fn is_length(self) -> bool {
        use ComparedFigure::{BondLengthError, MatPrecision, MatRecall};
        matches!(self, BondLengthError | MatPrecision | MatRecall)
    }
}

/// A figure of a run, compared with the run without a logit processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FigureDifference {
    /// The figure.
    pub figure: ComparedFigure,
    /// The value without the logit processor.
    pub without: f64,
    /// The value with the logit processor.
    pub with: f64,
    /// The value with the processor minus the value without; lengths and coverage are averaged over molecules.
    pub difference: f64,
    /// The interval of the difference over molecules; `None` with fewer than two molecules.
    pub interval: Option<Interval>,
}

/// Texts that pass only with a logit processor, compared with texts of the same molecule that also pass without it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RescuedTexts {
    /// The number of texts that pass only with the logit processor.
    pub texts: u64,
    /// The number of molecules that have both such texts and texts that pass in both runs.
    pub molecules_compared: u64,
    /// The bond-length error of the rescued texts minus that of the others, in Å; a mean over molecules with both.
    pub bond_error_difference_angstrom: Option<Mean>,
    /// The smallest RMSD to a reference of the rescued texts minus that of the others, in Å; a mean over molecules with both.
    pub nearest_difference_angstrom: Option<Mean>,
}
