//! Runs a comparison: reads two corpora, writes a report and a list.

use super::compare::Comparison;
use super::other::Other;
use super::plan::AgainstPlan;
use super::report::AgainstReport;
use crate::corpus::{Conformers, Files, ReadOptions, RowFilter};
use crate::parameter;
use drift_core::error::{Error, Result};
use drift_core::job::Job;

/// Receives the lines of a list, in order.
pub type PutList<'p> = dyn FnMut(&[u8]) -> Result<()> + 'p;

/// Reads the other corpus, then streams the inputs and compares them with it.
///
/// # Errors
/// If the encoding has codes instead of coordinates, the bound is not a valid length, or the other corpus has no molecule to
/// compare; the errors of [`corpus::read`](crate::corpus::read()), and those of `put`.
pub fn against(plan: &AgainstPlan, job: &Job, put: &mut PutList<'_>) -> Result<AgainstReport> {
    let other = plan.other(job)?;
    let mut comparison = Comparison::new(&other, plan.is_listed);
    let files = Files { inputs: plan.inputs.clone(), options: plan.options.clone() };
    let read = files.read(job, &mut |batch| put(&comparison.add(&batch)?))?;
    let found = comparison.found;
    Ok(AgainstReport::new(plan, read, &found, other.summary))
}

impl AgainstPlan {
    /// Reads the other corpus.
    pub(super) fn other(&self, job: &Job) -> Result<Other> {
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
        let options = ReadOptions { rows: RowFilter::default(), ..self.options.clone() };
        let files = Files { inputs: self.others.clone(), options };
        Other::read(&files, self.bound_angstrom, self.isotopes, job)
    }
}

/// The largest allowed bound, in Å. Beyond it the spreads would hardly exclude any pair, and almost every pair would be measured.
const MOST_ANGSTROM: f64 = 1.0;
