//! Where conformers were read.

use std::sync::Arc;

use crate::corpus::{Batch, SkippedRecord};

/// Where a conformer was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPlace {
    /// Its file.
    pub file: Arc<str>,
    /// Its line, from 1; `None` if records are not lines.
    pub line: Option<u64>,
    /// Its number among the readable conformers of the file, from 1.
    pub conformer: u64,
}

impl RowPlace {
    /// Returns the record in words: `line 3`.
    pub fn record(&self) -> String {
        self.line.map_or_else(|| format!("conformer {}", self.conformer), |line| format!("line {line}"))
    }

    /// Returns the record as one that was left out for a reason.
    pub(crate) fn skipped(&self, reason: String) -> SkippedRecord {
        SkippedRecord { file: self.file.to_string(), record: self.record(), reason }
    }
}

/// Counts the conformers of a file, batch by batch.
#[derive(Debug, Default)]
pub(crate) struct PlaceCounter {
    file: Arc<str>,
    /// The number of conformers of the file before this batch.
    before: u64,
}

impl PlaceCounter {
    /// Returns the places of the conformers of the next batch.
    pub(crate) fn places(&mut self, batch: &Batch) -> Vec<RowPlace> {
        if self.file != batch.file {
            (self.file, self.before) = (batch.file.clone(), 0);
        }
        let before = self.before;
        self.before += batch.conformers.len() as u64;
        (before + 1..=self.before)
            .enumerate()
            .map(|(at, conformer)| {
                let (file, line) = (self.file.clone(), batch.lines.get(at).copied());
                RowPlace { file, line, conformer }
            })
            .collect()
    }
}
