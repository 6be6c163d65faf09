//! Runs a comparison: reads two corpora, writes a report and a list.

use super::compare::Comparison;
use super::layouts::Layouts;
use super::other::OtherCorpus;
use super::other_reader::read_other;
use super::plan::AgainstPlan;
use super::record::COLUMNS;
use super::report::AgainstReport;
use crate::corpus::{Conformers, Files, ReadOptions, RowFilter, RowNeeds};
use crate::parameter;
use drift_core::{Error, Job, Result};

/// Receives the lines of a list, in order.
pub type PutList<'p> = dyn FnMut(&[u8]) -> Result<()> + 'p;

/// Where the results go that are as long as the inputs.
pub struct AgainstOutput<'a, 'p> {
    /// Receives the lines of the list, in order.
    pub list: &'a mut PutList<'p>,
    /// Receives the rows that stay, as they are, with the header of tables before the first.
    pub rows: &'a mut PutList<'p>,
}

/// Reads the other corpus, then streams the inputs and compares them with it.
///
/// # Errors
/// If rows are to be written, and the records of a file are no rows, or tables have different headers.
/// If the encoding has codes instead of coordinates, the bound is not a valid length, or the other corpus has no molecule to
/// compare; the errors of [`corpus::read`](crate::corpus::read()), and those of `put`.
pub fn against(plan: &AgainstPlan, job: &Job, out: &mut AgainstOutput<'_, '_>) -> Result<AgainstReport> {
    let other = plan.other(job)?;
    let mut comparison = Comparison::new(&other, plan);
    let mut layouts = Layouts::default();
    let files = Files { inputs: plan.inputs.clone(), options: plan.row_options() };
    let read = files.read(job, &mut |batch| {
        if let Some(layout) = &batch.rows.layout {
            (out.rows)(layouts.begin(layout, &batch.file)?.unwrap_or_default().as_bytes())?;
        }
        let compared = comparison.add(&batch)?;
        (out.list)(&compared.lines)?;
        (out.rows)(&compared.kept)
    })?;
    let found = comparison.found;
    Ok(AgainstReport::new(plan, read, &found, other.summary))
}

impl AgainstPlan {
    /// Returns how the streamed corpus is read.
    pub(super) fn row_options(&self) -> ReadOptions {
        let bytes_for = self.keeps_rows.then_some(parameter::DROP_SHARED);
        ReadOptions { needs: RowNeeds { columns: COLUMNS, bytes_for }, ..self.options.clone() }
    }

    /// Reads the other corpus.
    pub(super) fn other(&self, job: &Job) -> Result<OtherCorpus> {
        let encoding = self.options.reading.encoding;
        if !encoding.has_coordinates() {
            let problem = format!("has no coordinates to compare: its numbers are codes ({encoding})");
            let remedy = "decode the texts, and compare those";
            return Err(Error::parameter(parameter::ENCODING, problem, remedy));
        }
        if !(self.bound_angstrom >= 0.0 && self.bound_angstrom <= MOST_ANGSTROM) {
            let problem =
                format!("is {}, and one geometry lies within 0 to {MOST_ANGSTROM} Å", self.bound_angstrom);
            return Err(Error::parameter(parameter::WITHIN, problem, "leave it out for 0.001"));
        }
        // Rows are picked of the corpus that is searched; the other one, such as a test set, counts as a whole.
        let needs = RowNeeds { columns: COLUMNS, bytes_for: None };
        let options = ReadOptions { rows: RowFilter::default(), needs, once: true, ..self.options.clone() };
        let files = Files { inputs: self.others.clone(), options };
        read_other(&files, self.bound_angstrom, self.isotopes, job)
    }
}

/// The largest allowed bound, in Å. Beyond it the spreads would hardly exclude any pair, and almost every pair would be measured.
const MOST_ANGSTROM: f64 = 1.0;
