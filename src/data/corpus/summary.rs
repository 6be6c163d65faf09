//! The result of reading a corpus: counts, and the first records of each kind that need the reader's attention.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::source::KNOWN_FORMATS;
use super::{AtomOrder, Batch, SkippedRecord};
use crate::parameter;
use drift_core::encoding::DecimalForms;
use drift_core::job::InputHash;
use drift_core::{Encoding, Error, Result};

/// The number of skipped records that a summary lists; it counts all of them.
pub const SKIPPED_LISTED: usize = 1_000;

/// The result of reading a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadSummary {
    /// The number of conformers that were read.
    pub conformers: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
    /// The first [`SKIPPED_LISTED`] of the skipped records.
    pub skipped_records: Vec<SkippedRecord>,
    /// The files, in reading order.
    pub inputs: Vec<InputHash>,
    /// Which decimals all texts agreed with, fixed or stripped; both if no file contained text.
    pub written: DecimalForms,
    /// The number of conformers whose atoms are in file order, not in the order of a SMILES.
    pub in_file_order: u64,
    /// The first [`SKIPPED_LISTED`] of these conformers, with the reasons.
    pub in_file_order_records: Vec<SkippedRecord>,
    /// The number of conformers with a coordinate outside the range of the encoding, so that its exact value is unknown.
    #[serde(default)]
    pub out_of_range: u64,
    /// The number of conformers with stereo that their SMILES leaves open.
    pub open_stereo: u64,
    /// The first [`SKIPPED_LISTED`] of these conformers, with the positions of the stereo.
    pub open_stereo_records: Vec<SkippedRecord>,
    /// The number of rows that were not asked for.
    #[serde(default)]
    pub left_out: u64,
    /// Whether they were read by shards of which some work is missing.
    #[serde(default)]
    pub is_partial: bool,
}

impl ReadSummary {
    /// Counts a batch of conformers of an encoding.
    pub(super) fn count(&mut self, batch: &Batch, encoding: Encoding) {
        self.out_of_range += batch.conformers.iter().filter(|c| c.is_out_of_range(encoding)).count() as u64;
        self.conformers += batch.conformers.len() as u64;
        self.skipped += batch.skipped.len() as u64;
        list(&mut self.skipped_records, batch.skipped.iter().map(SkippedRecord::shown));
        self.in_file_order += batch.conformers.iter().filter(|c| c.order == AtomOrder::File).count() as u64;
        list(&mut self.in_file_order_records, batch.in_file_order.iter().map(SkippedRecord::shown));
        self.open_stereo += batch.open_stereo_count;
        list(&mut self.open_stereo_records, batch.open_stereo.iter().map(SkippedRecord::shown));
        self.left_out += batch.left_out;
        self.written = batch.conformers.iter().fold(self.written, |all, c| all.join(c.written));
    }

    /// Appends the summary of files read after these.
    pub fn append(&mut self, behind: ReadSummary) {
        self.conformers += behind.conformers;
        self.skipped += behind.skipped;
        list(&mut self.skipped_records, behind.skipped_records);
        self.inputs.extend(behind.inputs);
        self.written = self.written.join(behind.written);
        self.in_file_order += behind.in_file_order;
        list(&mut self.in_file_order_records, behind.in_file_order_records);
        self.out_of_range += behind.out_of_range;
        self.open_stereo += behind.open_stereo;
        list(&mut self.open_stereo_records, behind.open_stereo_records);
        self.left_out += behind.left_out;
        self.is_partial |= behind.is_partial;
    }

    /// Counts conformers that were read as skipped, `out_of_range` of them beyond the range; `records` are the first of them.
    pub fn skip_read(&mut self, count: u64, out_of_range: u64, records: Vec<SkippedRecord>) {
        self.conformers -= count;
        self.out_of_range -= out_of_range;
        self.skipped += count;
        list(&mut self.skipped_records, records.iter().map(SkippedRecord::shown));
    }

    /// Refuses inputs that are not those of an earlier reading, which took `before` from them.
    ///
    /// # Errors
    /// If one of them has changed.
    pub fn refuse_if_changed(&self, before: &ReadSummary) -> Result<()> {
        if self.inputs == before.inputs && self.conformers == before.conformers {
            return Ok(());
        }
        let mut both = self.inputs.iter().zip(&before.inputs);
        let changed = both.find(|(now, then)| now != then).map_or("the input", |(now, _)| &*now.name);
        Err(Error::input(changed, "changed while it was read twice", "wait until it is completely written"))
    }

    /// Refuses inputs without any conformer.
    ///
    /// # Errors
    /// If no conformer was read.
    pub fn refuse_if_empty(&self, inputs: &[PathBuf]) -> Result<()> {
        if self.conformers > 0 {
            return Ok(());
        }
        if self.skipped == 0 && self.left_out > 0 {
            let place = inputs.first().map_or_else(String::new, |path| path.display().to_string());
            let problem = format!(
                "none of its {} rows has the values that {} asks for",
                self.left_out,
                parameter::WHERE
            );
            return Err(Error::input(place, problem, "check the values; they are compared letter by letter"));
        }
        let Some(first) = self.skipped_records.first() else {
            let place = inputs.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
            return Err(Error::input(place, "no conformer could be read: no record", KNOWN_FORMATS));
        };
        let (skipped, SkippedRecord { file, record, reason }) = (self.skipped, first);
        let records = if skipped == 1 { "record" } else { "records" };
        let problem =
            format!("no conformer could be read: {skipped} {records} skipped, first: {record}: {reason}");
        Err(Error::input(file, problem, "check that this is the right file"))
    }
}

/// Adds records to a list, up to the list's limit.
fn list(records: &mut Vec<SkippedRecord>, more: impl IntoIterator<Item = SkippedRecord>) {
    let room = SKIPPED_LISTED - records.len();
    records.extend(more.into_iter().take(room));
}
