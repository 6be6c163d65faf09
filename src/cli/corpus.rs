//! The conformers of `--corpus`.

use std::path::PathBuf;
use std::sync::Mutex;

use super::output::Output;
use super::skipped;
use drift_core::encoding::Reading;
use drift_core::error::{Error, Result};
use drift_core::job::Job;
use drift_data::corpus::{Conformers, EmbeddedCorpus, Emit, ReadOptions, ReadSummary, files_or_embedded};
use drift_data::parameter;

/// The files given, or the built-in corpus. Keeps the summary of the last read, for [`Corpus::tell`].
pub(super) struct Corpus {
    inner: Box<dyn Conformers>,
    /// Whether rows of the built-in corpus were to be picked, which has no columns to pick them by.
    picks_of_embedded: bool,
    summary: Mutex<Option<ReadSummary>>,
}

impl Corpus {
    /// The conformers of `inputs`, or of the built-in corpus if there are none.
    pub(super) fn new(inputs: &[PathBuf], options: ReadOptions) -> Self {
        let is_embedded =
            inputs.is_empty() || inputs.iter().any(|path| EmbeddedCorpus::by_name(path).is_some());
        let picks_of_embedded = is_embedded && !options.rows.is_empty();
        let inner = files_or_embedded(inputs, options);
        Corpus { inner, picks_of_embedded, summary: Mutex::default() }
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
    fn read(&self, job: &Job, emit: &mut Emit<'_>) -> Result<ReadSummary> {
        if self.picks_of_embedded {
            let problem = "the built-in corpus has no columns by which rows could be picked";
            return Err(Error::parameter(
                parameter::WHERE,
                problem,
                format!("give {} too", parameter::CORPUS),
            ));
        }
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
