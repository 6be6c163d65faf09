//! Collects records into batches, for readers that process a file record by record.

use super::{Batch, BatchSink, Conformer, Context, SKIPPED_LISTED, SkippedRecord};
use drift_core::Result;

/// The number of atoms in a batch: about 1 MB of coordinates.
const BATCH_ATOMS: usize = 1 << 16;
/// The number of records in a batch, good or bad.
const BATCH_RECORDS: usize = 1 << 12;

/// A conformer that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CollectedRecord {
    pub conformer: Conformer,
    /// The reason why its atoms stay in file order, if they do although the file could have had a text.
    pub in_file_order: Option<String>,
    /// Stereo that its SMILES leaves open.
    pub open_stereo: Option<String>,
}

impl From<Conformer> for CollectedRecord {
    fn from(conformer: Conformer) -> Self {
        CollectedRecord { conformer, in_file_order: None, open_stereo: None }
    }
}

/// Collects records and emits them in batches. [`finish`](Self::finish) emits the last batch.
pub(super) struct Collector<'a, 'e> {
    file: String,
    context: Context<'a>,
    emit: &'a mut BatchSink<'e>,
    batch: Batch,
    atoms: usize,
    /// How many records were listed for being in file order, and for open stereo.
    listed: [usize; 2],
}

impl<'a, 'e> Collector<'a, 'e> {
    /// Returns a collector for the records of `file`.
    pub(super) fn new(file: String, context: Context<'a>, emit: &'a mut BatchSink<'e>) -> Self {
        Collector { file, context, emit, batch: Batch::default(), atoms: 0, listed: [0; 2] }
    }

    /// Adds a record, or the reason why it is skipped. `record` describes the record and its position.
    pub(super) fn push(
        &mut self,
        outcome: Result<CollectedRecord, String>,
        record: impl Fn() -> String,
    ) -> Result<()> {
        match outcome {
            Ok(finished) => {
                let CollectedRecord { conformer, in_file_order, open_stereo } = finished;
                self.batch.open_stereo_count += u64::from(open_stereo.is_some());
                let lists = [&mut self.batch.in_file_order, &mut self.batch.open_stereo];
                let reasons = [in_file_order, open_stereo];
                for ((list, listed), reason) in lists.into_iter().zip(&mut self.listed).zip(reasons) {
                    if let Some(reason) = reason.filter(|_| *listed < SKIPPED_LISTED) {
                        *listed += 1;
                        list.push(SkippedRecord { file: self.file.clone(), record: record(), reason });
                    }
                }
                self.atoms += conformer.coordinates.len();
                self.batch.conformers.push(conformer);
            }
            Err(reason) => {
                let (file, record) = (self.file.clone(), record());
                self.batch.skipped.push(SkippedRecord { file, record, reason });
            }
        }
        let records = self.batch.conformers.len() + self.batch.skipped.len();
        if self.atoms >= BATCH_ATOMS || records >= BATCH_RECORDS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.context.job.check()?;
        self.atoms = 0;
        (self.emit)(std::mem::take(&mut self.batch))
    }

    /// Emits the rest.
    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()
    }
}
