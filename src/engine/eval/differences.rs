//! What a record says of runs beside one another.

use serde::{Deserialize, Serialize};

use drift_core::constraint::ProcessorKind;
use drift_data::stats::Interval;
use drift_data::stats::bootstrap::Mean;

/// What seconds of a run are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpeedMeasure {
    /// CPU seconds of all threads, so that other work on the machine counts little.
    Cpu,
    /// Seconds of the clock: on a GPU, or where the system tells no others.
    #[default]
    Wall,
}

impl SpeedMeasure {
    /// In words: texts per …
    pub fn unit(self) -> &'static str {
        match self {
            SpeedMeasure::Cpu => "CPU second",
            SpeedMeasure::Wall => "second",
        }
    }
}

/// A run against the run of the same model without logit processor: same molecules, same random numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairedComparison {
    /// The model's name.
    pub model: String,
    /// The logit processor.
    pub lp: ProcessorKind,
    /// Its placeholder.
    pub placeholder: Option<String>,
    /// Texts that passed here less those that passed without.
    pub passed_difference: i64,
    /// Texts whose skeleton the model copied exactly without logit processor, every block well formed.
    pub well_formed_without: u64,
    /// Of them, texts that came out the same.
    pub identical: u64,
    /// Bond-length error less the one without, in Å, over the molecules whose texts passed without; paired.
    pub bond_error_difference_angstrom: Option<Mean>,
    /// MAT-P less the one without, in Å, paired in the same way.
    pub mat_precision_difference_angstrom: Option<Mean>,
    /// MAT-R less the one without, in Å, paired in the same way.
    pub mat_recall_difference_angstrom: Option<Mean>,
    /// Texts per CPU second by those without, so that other work on the machine counts little; by the clock where CPU seconds
    /// are not known.
    pub speed_ratio: f64,
    /// How many times as fast it was as the one without, with its interval, over the batches of both.
    #[serde(default)]
    pub speed: Option<SpeedRatio>,
    /// Rows that are set against none on this model: the intervals of `figures`, `rescued` and `speed` are corrected for them
    /// (Bonferroni), the others are not.
    #[serde(default)]
    pub rows: usize,
    /// Every figure with and without, over the texts that both runs have.
    #[serde(default)]
    pub figures: Vec<FigureDifference>,
    /// The texts that pass here and not without, against those of the same molecule that pass both ways.
    #[serde(default)]
    pub rescued: Option<Rescued>,
}

/// How many times as fast one run was as another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpeedRatio {
    /// Seconds of the other by seconds of this, over the batches of both.
    pub ratio: f64,
    /// Its interval; none with fewer than two batches.
    pub interval: Option<Interval>,
    /// How many batches.
    pub batches: usize,
    /// What the seconds are.
    pub measure: SpeedMeasure,
}

/// A figure that runs are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedFigure {
    /// Share of texts that pass.
    Passed,
    /// Share of texts of another molecule.
    GraphMismatch,
    /// Share of texts that are no enriched SMILES, or hold a block that is not three numbers.
    ParseFailures,
    /// Share of texts without end.
    NoEos,
    /// Share of blocks that are not three numbers.
    JunkBlocks,
    /// Share of blocks that lost digits.
    TruncatedBlocks,
    /// Share of blocks with invented digits.
    InventedBlocks,
    /// Bond-length error, in Å, over texts usable both ways.
    BondLengthError,
    /// MAT-P, in Å, over texts usable both ways.
    MatPrecision,
    /// MAT-R, in Å, over texts usable both ways.
    MatRecall,
    /// COV-P at 0.75 Å, over texts usable both ways.
    CovPrecision,
    /// COV-R at 0.75 Å, over texts usable both ways.
    CovRecall,
}

impl ComparedFigure {
    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, ComparedFigure::Passed | ComparedFigure::CovPrecision | ComparedFigure::CovRecall)
    }

    /// Whether it is a length in Å, not a share.
    pub fn is_length(self) -> bool {
        use ComparedFigure::{BondLengthError, MatPrecision, MatRecall};
        matches!(self, BondLengthError | MatPrecision | MatRecall)
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            ComparedFigure::Passed => "texts that pass",
            ComparedFigure::GraphMismatch => "texts of another molecule",
            ComparedFigure::ParseFailures => "texts that do not parse",
            ComparedFigure::NoEos => "texts without end",
            ComparedFigure::JunkBlocks => "junk blocks",
            ComparedFigure::TruncatedBlocks => "blocks that lose digits",
            ComparedFigure::InventedBlocks => "blocks with invented digits",
            ComparedFigure::BondLengthError => "bond-length error",
            ComparedFigure::MatPrecision => "MAT-P",
            ComparedFigure::MatRecall => "MAT-R",
            ComparedFigure::CovPrecision => "COV-P",
            ComparedFigure::CovRecall => "COV-R",
        }
    }
}

/// One figure of a run beside that without logit processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FigureDifference {
    /// Which.
    pub figure: ComparedFigure,
    /// Without logit processor.
    pub without: f64,
    /// With it.
    pub with: f64,
    /// The second less the first; over molecules for lengths and coverage.
    pub difference: f64,
    /// Its interval over molecules; none with fewer than two.
    pub interval: Option<Interval>,
}

/// Texts that a logit processor makes pass, against texts of the same molecule that pass without it too.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rescued {
    /// How many there are.
    pub texts: u64,
    /// Molecules that have such texts, and others that pass both ways.
    pub molecules_compared: u64,
    /// Bond-length error of the rescued less that of the kept ones, in Å, a mean over molecules with both.
    pub bond_error_difference_angstrom: Option<Mean>,
    /// The least RMSD to a reference of the rescued less that of the kept ones, in Å, likewise.
    pub nearest_difference_angstrom: Option<Mean>,
}

impl PairedComparison {
    /// The logit processor with its placeholder.
    pub fn label(&self) -> String {
        label(self.lp, self.placeholder.as_deref())
    }
}

/// A logit processor with its placeholder.
pub(super) fn label(lp: ProcessorKind, placeholder: Option<&str>) -> String {
    placeholder.map_or_else(|| lp.to_string(), |placeholder| format!("{lp} {placeholder}"))
}
