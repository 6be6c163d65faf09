//! The result of a check, and the lines of its list.

use std::collections::BTreeMap;

use serde::Serialize;

use super::check::JudgedRow;
use super::kind::{FlawCounts, FlawKind};
use crate::corpus::{AtomOrder, Batch};
use drift_core::text::skeleton::smiles;
use drift_core::{Encoding, Error, Result};

/// The columns that a check reads, in the order of [`Batch::cells`].
pub const COLUMNS: &[&str] = &["dataset", "name", "id"];

/// The most data sets that are told apart.
const MOST_DATASETS: usize = 1_000;

/// What is in a corpus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlawReport {
    /// The largest RMSD of duplicate conformers, in Å.
    pub bound_angstrom: f64,
    /// The number of conformers.
    pub conformers: u64,
    /// The number of conformers with any flaw.
    pub flawed: u64,
    /// The numbers of conformers by flaw.
    #[serde(flatten)]
    pub counts: FlawCounts,
    /// The number of conformers without a molecule or without coordinates, of which only the text is compared.
    pub not_compared: u64,
    /// The number of conformers that are too symmetric or too large to be compared with an earlier one.
    pub undecided: u64,
    /// The numbers by the column `dataset`. Empty without this column.
    pub datasets: Vec<DatasetFlaws>,
    /// Whether there are more than 1,000 data sets, so that they are not told apart.
    pub has_too_many_datasets: bool,
}

/// Numbers of conformers of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatasetFlaws {
    /// The data set; `None` for rows without one.
    pub dataset: Option<String>,
    /// The number of its conformers.
    pub conformers: u64,
    /// Those with any flaw.
    pub flawed: u64,
    /// Those by flaw.
    #[serde(flatten)]
    pub counts: FlawCounts,
}

/// Numbers of some conformers.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    conformers: u64,
    flawed: u64,
    counts: FlawCounts,
}

impl Totals {
    fn add(&mut self, row: &JudgedRow) {
        self.conformers += 1;
        self.flawed += u64::from(row.flaws.kinds().next().is_some());
        self.counts.add(&row.flaws);
    }
}

/// Counts while a corpus is judged.
#[derive(Debug, Default)]
pub(crate) struct FlawTotals {
    all: Totals,
    not_compared: u64,
    undecided: u64,
    /// The empty name stands for rows without one.
    by_dataset: BTreeMap<String, Totals>,
    has_too_many: bool,
}

impl FlawTotals {
    /// Counts the conformers of a batch.
    pub(crate) fn add(&mut self, batch: &Batch, rows: &[JudgedRow], encoding: Encoding) {
        let has_coordinates = encoding.has_coordinates();
        for (at, row) in rows.iter().enumerate() {
            self.all.add(row);
            let is_compared = has_coordinates && batch.conformers[at].order == AtomOrder::Smiles;
            self.not_compared += u64::from(!is_compared);
            self.undecided += u64::from(row.is_undecided);
            self.add_to_dataset(cell(batch, at, 0).unwrap_or_default(), row);
        }
    }

    fn add_to_dataset(&mut self, dataset: &str, row: &JudgedRow) {
        if self.has_too_many {
            return;
        }
        if let Some(known) = self.by_dataset.get_mut(dataset) {
            return known.add(row);
        }
        self.by_dataset.entry(dataset.to_owned()).or_default().add(row);
        if self.by_dataset.len() > MOST_DATASETS {
            (self.has_too_many, self.by_dataset) = (true, BTreeMap::new());
        }
    }

    /// Returns the report, given the largest RMSD of duplicates, in Å.
    pub(crate) fn report(self, bound_angstrom: f64) -> FlawReport {
        let has_names = self.by_dataset.keys().any(|name| !name.is_empty());
        let datasets = self.by_dataset.into_iter().filter(|_| has_names);
        FlawReport {
            bound_angstrom,
            conformers: self.all.conformers,
            flawed: self.all.flawed,
            counts: self.all.counts,
            not_compared: self.not_compared,
            undecided: self.undecided,
            datasets: datasets.map(|(name, totals)| DatasetFlaws::new(name, totals)).collect(),
            has_too_many_datasets: self.has_too_many,
        }
    }
}

impl DatasetFlaws {
    fn new(name: String, totals: Totals) -> Self {
        let Totals { conformers, flawed, counts } = totals;
        DatasetFlaws { dataset: Some(name).filter(|name| !name.is_empty()), conformers, flawed, counts }
    }
}

/// A line of the list: a conformer and one of its flaws.
#[derive(Debug, Serialize)]
struct ListedFlaw<'l> {
    file: &'l str,
    line: Option<u64>,
    conformer: u64,
    name: Option<&'l str>,
    molecule: &'l str,
    kind: FlawKind,
    /// The number of pairs of atoms, of bonds, of parts or of stereo marks; `None` for a duplicate.
    count: Option<u32>,
    /// The earlier conformer; `None` if it is no duplicate.
    of_file: Option<&'l str>,
    of_line: Option<u64>,
    of_conformer: Option<u64>,
}

/// Returns the lines of the conformers of a batch that have a flaw.
///
/// # Errors
/// None for text; those of JSON otherwise.
pub(crate) fn listed(batch: &Batch, rows: &[JudgedRow]) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let mut kinds = row.flaws.kinds().peekable();
        if kinds.peek().is_none() {
            continue;
        }
        let conformer = &batch.conformers[at];
        let molecule = smiles(&conformer.skeleton);
        for kind in kinds {
            let original = row.original.as_ref().filter(|_| kind.is_duplicate());
            let line = ListedFlaw {
                file: &row.place.file,
                line: row.place.line,
                conformer: row.place.conformer,
                name: cell(batch, at, 1).or_else(|| cell(batch, at, 2)).or(conformer.id.as_deref()),
                molecule: &molecule,
                kind,
                count: Some(row.flaws.of(kind)).filter(|_| !kind.is_duplicate()),
                of_file: original.map(|place| &*place.file),
                of_line: original.and_then(|place| place.line),
                of_conformer: original.map(|place| place.conformer),
            };
            serde_json::to_writer(&mut lines, &line).map_err(|e| Error::internal("a line of the list", e))?;
            lines.push(b'\n');
        }
    }
    Ok(lines)
}

/// Returns the value of one of [`COLUMNS`]; `None` if it is missing or empty.
fn cell(batch: &Batch, row: usize, column: usize) -> Option<&str> {
    batch.cells.get(row)?.get(column)?.as_deref()
}
