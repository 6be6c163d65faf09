//! The energies of a run's texts, from the same program that audits use.

use std::collections::HashMap;

use super::judged::Judged;
use super::subject::Subject;
use drift_core::error::{Error, Result};
use drift_core::job::Job;
use drift_core::text::skeleton::smiles;
use drift_data::audit::geometry::Conformation;
use drift_data::audit::{AnsweredText, EnergyReport, EnergyText, energy_report};
use drift_data::energy::{Energies, EnergyFrame};

/// The program's answers for the texts of all runs so far.
#[derive(Default)]
pub(super) struct Answered {
    /// For each run, its model and its texts.
    runs: Vec<(String, Vec<AnsweredText>)>,
}

impl Answered {
    /// Requests the energies of a run's texts that pass and whose chemistry is checked.
    ///
    /// # Errors
    /// The errors of [`Energies::of`].
    pub(super) fn add(
        &mut self,
        energies: &Energies,
        subjects: &[Subject],
        (model, label, judged): (&str, &str, &[Judged]),
        job: &Job,
    ) -> Result<()> {
        let texts = judged.iter().filter_map(|text| asked(&subjects[text.subject], text, label)).collect();
        self.runs.push((model.to_owned(), AnsweredText::ask(energies, texts, job)?));
        Ok(())
    }

    /// The report on all runs, compared with the references of each molecule; `None` if the job was cancelled.
    ///
    /// # Errors
    /// The errors of [`Energies::of`].
    pub(super) fn report(
        &self,
        energies: &Energies,
        subjects: &[Subject],
        job: &Job,
    ) -> Result<Option<EnergyReport>> {
        // Each stereoisomer has its own energies, so the references are those of the prompt's isomer, not of its pool.
        let conformers: HashMap<&str, &[Conformation]> = subjects
            .iter()
            .filter_map(|one| Some((&*one.molecule.skeleton, &*one.reference.as_ref()?.conformers)))
            .collect();
        let runs: Vec<_> = self.runs.iter().map(|(model, texts)| (&**model, &**texts)).collect();
        let report = energy_report(energies, &runs, |skeleton| conformers.get(skeleton).copied(), job);
        unless_cancelled(report)
    }
}

/// The answer; `None` if the job was cancelled, which is not an error of an evaluation.
pub(super) fn unless_cancelled<T>(asked: Result<T>) -> Result<Option<T>> {
    match asked {
        Err(Error::Interrupted) => Ok(None),
        asked => asked.map(Some),
    }
}

/// The request for a text; `None` if its energy is not requested.
fn asked(subject: &Subject, text: &Judged, label: &str) -> Option<EnergyText> {
    let (chemistry, points) = (subject.chemistry.as_ref()?, text.points.as_ref()?);
    // The chemistry gives the elements, which must be as many as the points.
    if chemistry.atoms() != points.len() {
        return None;
    }
    let frame = EnergyFrame {
        smiles: smiles(&subject.molecule.skeleton),
        elements: chemistry.elements().collect(),
        points: points.clone(),
    };
    let valid = chemistry.check(points).is_some_and(|found| found.is_valid());
    let record = format!("text {}", text.generation);
    Some(EnergyText { record, lp: Some(label.to_owned()), valid, frame })
}
