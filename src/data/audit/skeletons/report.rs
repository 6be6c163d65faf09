//! The report of texts that were judged by a skeleton.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cell::TextGeometry;
use crate::corpus::SkippedRecord;
use crate::stats::Interval;
use crate::stats::bootstrap::Mean;
use drift_core::job::InputHash;
use drift_core::skeleton::{Fault, FaultKind};

/// The value of `schema`.
pub(super) const REPORT_SCHEMA: &str = "drift.skeleton-audit/1";

/// Distances below this are too short for two atoms, in Å: the bound of the projects whose crystals are read.
pub const CLOSE_ANGSTROM: f64 = 0.5;

/// The quantiles of the shortest distances that a row has.
pub const DISTANCE_QUANTILES: [f64; 7] = [0.0, 0.01, 0.05, 0.25, 0.5, 0.95, 1.0];

/// The verdict on a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkeletonVerdict {
    /// The file of the text.
    pub file: String,
    /// Its record in the file.
    pub record: String,
    /// The row.
    pub row: String,
    /// The index of its prompt in the file of prompts.
    pub prompt: usize,
    /// The index of the text among those of its row and prompt.
    pub generation: usize,
    /// Whether it is a text of the skeleton, for its prompt.
    pub passed: bool,
    /// The kind of its first fault; `None` if it passed.
    pub why: Option<FaultKind>,
    /// The first fault of each kind, in the order of the text.
    pub faults: Vec<Fault>,
    /// The number of faults by kind.
    pub counts: BTreeMap<FaultKind, usize>,
    /// The number of items that repeat one before them.
    pub repeated_items: usize,
    /// Whether an earlier text of its row and prompt is the same.
    pub repeats_text: bool,
    /// Its geometry; `None` if the skeleton has none, or numbers are missing.
    pub geometry: Option<TextGeometry>,
}

/// The texts of a row together.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct SkeletonRow {
    /// The name of the row.
    pub row: String,
    /// The number of texts.
    pub texts: u64,
    /// The number that passed.
    pub passed: u64,
    /// By kind of fault, the number of texts with it.
    pub faults: BTreeMap<FaultKind, u64>,
    /// The number of texts with an item that repeats one before it.
    pub texts_with_repeated_items: u64,
    /// The number of texts that repeat an earlier text of the same prompt.
    pub repeated_texts: u64,
    /// The geometry of its texts; `None` if none has one.
    pub geometry: Option<RowGeometry>,
}

/// The geometry of the texts of a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RowGeometry {
    /// The number of texts with a geometry.
    pub texts: u64,
    /// The number whose cell has no volume.
    pub without_volume: u64,
    /// The number with a distance below 0.5 Å.
    pub close: u64,
    /// The number with a shortest distance.
    pub distances: u64,
    /// The [`DISTANCE_QUANTILES`] of the shortest distances in Å, whether a text passed or not.
    pub shortest_quantiles_angstrom: Option<[f64; 7]>,
    /// The median of the shortest distances in Å; the mean of the two middle ones of an even number.
    pub median_shortest_angstrom: Option<f64>,
    /// The median of the volumes per atom in Å³, likewise.
    pub median_volume_per_atom: Option<f64>,
}

/// An example of a fault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkeletonExample {
    /// The row.
    pub row: String,
    /// The file and record.
    pub place: String,
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
}

/// A row compared with the base row, on the same prompts and generations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkeletonComparison {
    /// The row.
    pub row: String,
    /// The number of pairs.
    pub pairs: u64,
    /// The number of texts of either row without a partner.
    pub unpaired: u64,
    /// Of the texts of the base row that pass, the number that are the same text here.
    pub identical: u64,
    /// The number of texts of the base row that pass and are in a pair.
    pub passed_without: u64,
    /// The shares that were compared: passed, each kind of fault that occurs, and texts with a distance below 0.5 Å.
    pub figures: Vec<SkeletonFigure>,
    /// The shortest distance in this row minus that in the base row in Å, over prompts with texts that pass in both.
    pub shortest_difference_angstrom: Option<Mean>,
    /// The same over all texts with a geometry, whether they pass or not.
    pub all_shortest_difference_angstrom: Option<Mean>,
}

/// A share in two rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkeletonFigure {
    /// `passed`, a kind of fault, or `close`.
    pub figure: String,
    /// The share in the base row.
    pub without: f64,
    /// The share in this row.
    pub with: f64,
    /// Their difference.
    pub difference: f64,
    /// Its interval over prompts; `None` for fewer than two.
    pub interval: Option<Interval>,
}

/// The report of an audit by a skeleton.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkeletonReport {
    /// `drift.skeleton-audit/1`
    pub schema: &'static str,
    /// The name of the skeleton.
    pub skeleton: String,
    /// Where texts of its kind are from.
    pub source: Option<String>,
    /// The file of prompts.
    pub prompts: InputHash,
    /// The files of texts.
    pub inputs: Vec<InputHash>,
    /// The rows, in the order in which they first occur.
    pub rows: Vec<SkeletonRow>,
    /// The base row, if rows were compared.
    pub against_row: Option<String>,
    /// The comparisons with it.
    pub comparisons: Vec<SkeletonComparison>,
    /// The first fault of each kind in each row.
    pub examples: Vec<SkeletonExample>,
    /// The number of records that were skipped.
    pub skipped: u64,
    /// The first of these.
    pub skipped_records: Vec<SkippedRecord>,
}
