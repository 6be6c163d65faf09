//! Batches of records, for readers that go through a file one record after another.

use super::{Batch, Conformer, Context, Emit, Skipped};
use crate::error::Result;

/// Atoms in a batch: about 1 MB of coordinates.
const BATCH_ATOMS: usize = 1 << 16;
/// Records in a batch, good or bad.
const BATCH_RECORDS: usize = 1 << 12;

/// Collects records and emits them a batch at a time; [`finish`](Self::finish) emits the last.
pub(super) struct Collector<'a, 'e> {
    file: String,
    context: Context<'a>,
    emit: &'a mut Emit<'e>,
    batch: Batch,
    atoms: usize,
}

impl<'a, 'e> Collector<'a, 'e> {
    /// For the records of `file`.
    pub(super) fn new(file: String, context: Context<'a>, emit: &'a mut Emit<'e>) -> Self {
        Collector { file, context, emit, batch: Batch::default(), atoms: 0 }
    }

    /// Adds a record, or the reason why it is skipped; `record` says what and where it is.
    pub(super) fn push(
        &mut self,
        outcome: Result<Conformer, String>,
        record: impl Fn() -> String,
    ) -> Result<()> {
        match outcome {
            Ok(conformer) => {
                self.atoms += conformer.coordinates.len();
                self.batch.conformers.push(conformer);
            }
            Err(reason) => {
                let (file, record) = (self.file.clone(), record());
                self.batch.skipped.push(Skipped { file, record, reason });
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

    /// Emits what is left.
    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()
    }
}
