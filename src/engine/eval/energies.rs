//! The energies of a run's texts, from the same program that audits use.

use drift_core::{Error, Job, Result};
use drift_data::audit::{AnsweredText, EnergyReport, EnergyText, PromptReferences, energy_report};
use drift_data::energy::Energies;

/// The program's answers for the texts of all runs so far.
#[derive(Default)]
pub(super) struct EnergyAnswers {
    /// For each run, its model and its texts.
    runs: Vec<(String, Vec<AnsweredText>)>,
}

impl EnergyAnswers {
    /// Requests the energies of a run's texts. Returns whether the job was cancelled, which is not an error of an evaluation.
    ///
    /// # Errors
    /// The errors of [`Energies::of`].
    pub(super) fn add(
        &mut self,
        energies: &Energies,
        model: &str,
        texts: Vec<EnergyText>,
        job: &Job,
    ) -> Result<bool> {
        let answered = unless_cancelled(AnsweredText::ask(energies, texts, job))?;
        let interrupted = answered.is_none();
        self.runs.extend(answered.map(|texts| (model.to_owned(), texts)));
        Ok(interrupted)
    }

    /// Returns the report on all runs, compared with the references of each molecule; `None` if the job was cancelled.
    ///
    /// # Errors
    /// The errors of [`Energies::of`].
    pub(super) fn report(
        &self,
        energies: &Energies,
        references: &PromptReferences,
        job: &Job,
    ) -> Result<Option<EnergyReport>> {
        let runs: Vec<_> = self.runs.iter().map(|(model, texts)| (&**model, &**texts)).collect();
        // Each stereoisomer has its own energies, so the references are those of the prompt's isomer, not of its pool.
        let conformers = |skeleton: &str| Some(&*references.own().get(skeleton)?.conformers);
        unless_cancelled(energy_report(energies, &runs, conformers, job))
    }
}

/// Returns the answer; `None` if the job was cancelled.
fn unless_cancelled<T>(asked: Result<T>) -> Result<Option<T>> {
    match asked {
        Err(Error::Interrupted) => Ok(None),
        asked => asked.map(Some),
    }
}
