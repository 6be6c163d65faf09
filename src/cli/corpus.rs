//! The conformers of `--corpus`.

use std::path::PathBuf;
use std::sync::Mutex;

use super::output::Output;
use super::skipped;
use drift_core::encoding::Reading;
use drift_core::{Job, Result};
use drift_data::corpus::{BatchSink, Conformers, ReadOptions, ReadSummary, files_or_embedded};

/// The files given, or the built-in corpus. Keeps the summary of the last read, for [`Corpus::tell`].
pub(super) struct Corpus {
    inner: Box<dyn Conformers>,
    summary: Mutex<Option<ReadSummary>>,
}

impl Corpus {
    /// Returns the conformers of `inputs`, or of the built-in corpus if there are none.
    pub(super) fn new(inputs: &[PathBuf], options: ReadOptions) -> Self {
        let inner = files_or_embedded(inputs, options);
        Corpus { inner, summary: Mutex::default() }
    }

    /// Notes how many conformers have their atoms in the order of the file, for want of a SMILES.
    pub(super) fn tell(&self, output: &Output) {
        let Ok(summary) = self.summary.lock() else { return };
        if let Some(summary) = summary.as_ref().filter(|_| !output.json) {
            skipped::tell_file_order(summary.in_file_order, &summary.in_file_order_records, output);
            skipped::tell_left_out(summary.left_out, output);
        }
    }
}

impl Conformers for Corpus {
    fn read(&self, job: &Job, emit: &mut BatchSink<'_>) -> Result<ReadSummary> {
        let summary = self.inner.read(job, emit)?;
        if let Ok(mut known) = self.summary.lock() {
            *known = Some(summary.clone());
        }
        Ok(summary)
    }

    fn can_be_read_again(&self) -> Result<()> {
        self.inner.can_be_read_again()
    }

    fn reading(&self) -> Reading {
        self.inner.reading()
    }
}
