//! Energies of texts, computed by an external program of the user, and their strain.
//!
//! The strain of a text is its energy minus that of the relaxed conformer, if the program returns it, otherwise minus the lowest
//! energy among the references of its molecule. A text with neither has no strain; of a program that relaxes, nor has a text that it could
//! not relax, because the two kinds of strain cannot be compared. The program is asked for the same texts whose
//! chemistry is checked ([`usable_points`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::geometry::Conformation;
use super::group::Checkers;
use super::judging::usable_points;
use super::records::ConformerText;
use super::request::AuditPlan;
use super::sample::{TextVerdict, split};
use crate::audit::chemistry::Chemistry;
use crate::energy::{Energies, EnergyAnswer, EnergyFrame};
use drift_core::text::skeleton;
use drift_core::{Encoding, Job, Result};

/// The schema of [`EnergyReport`].
pub(crate) const ENERGY_SCHEMA: &str = "drift.energy/1";

/// A text whose energy is requested: it passes, and its chemistry is checked.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergyText {
    /// The position of the text in its file.
    pub record: String,
    /// The model, if the record names one.
    pub model: Option<String>,
    /// The logit processor, if the record names one.
    pub lp: Option<String>,
    /// Whether it breaks no chemistry rule.
    pub valid: bool,
    /// The input for the program.
    pub frame: EnergyFrame,
}

/// A text that passes, with the program's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnsweredText {
    record: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    lp: Option<String>,
    smiles: String,
    valid: bool,
    answer: EnergyAnswer,
}

impl EnergyText {
    /// Returns the text of a record, or one of its conformers, if a program is to be asked for its energy.
    pub(super) fn of(
        plan: &AuditPlan,
        encoding: Encoding,
        checkers: &mut Checkers,
        conformer: &ConformerText<'_>,
        judged: &TextVerdict,
    ) -> Option<Self> {
        let ConformerText { record, place, of, text, .. } = *conformer;
        plan.energy.as_ref()?;
        // Prompts were parsed when they were read.
        let key = skeleton::from_smiles(&judged.smiles(record.prompt.as_deref())?).ok()?;
        let answer = split(text).answer;
        let points = usable_points(answer, judged, &key, encoding, plan.request.max_atoms)?;
        // The checker provides the elements, one for each point.
        let checker = checkers.of(&key).filter(|checker| checker.atoms() == points.len())?;
        let valid = checker.check(&points).is_some_and(|found| found.is_valid());
        let elements = checker.elements().collect();
        let frame = EnergyFrame { smiles: skeleton::smiles(&key), elements, points };
        Some(EnergyText {
            record: if of > 1 {
                format!("{}, conformer {}", record.place, place + 1)
            } else {
                record.place.clone()
            },
            model: record.row.model.clone(),
            lp: record.row.lp.as_ref().map(|_| record.row.processor()),
            valid,
            frame,
        })
    }
}

impl AnsweredText {
    /// Asks the program for the energies of texts. The results are in the same order.
    ///
    /// # Errors
    /// As [`Energies::of`].
    pub fn ask(energies: &Energies, texts: Vec<EnergyText>, job: &Job) -> Result<Vec<Self>> {
        let apart =
            texts.into_iter().map(|text| ((text.record, text.model, text.lp, text.valid), text.frame));
        let (named, frames): (Vec<_>, Vec<EnergyFrame>) = apart.unzip();
        let answers = energies.of(&frames, job)?.into_iter();
        let smiles = frames.into_iter().map(|frame| frame.smiles);
        let answered = named.into_iter().zip(smiles).zip(answers).map(|((named, smiles), answer)| {
            let (record, model, lp, valid) = named;
            AnsweredText { record, model, lp, smiles, valid, answer }
        });
        Ok(answered.collect())
    }
}

/// The energies in an audit or an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyReport {
    /// [`ENERGY_SCHEMA`].
    pub schema: String,
    /// The command of the program.
    pub command: String,
    /// The unit of the program's numbers. All figures are in kcal/mol.
    pub unit: crate::energy::EnergyUnit,
    /// By file, and by model and logit processor if records name them.
    pub files: Vec<EnergyFigures>,
    /// The figures over all files.
    pub total: EnergyFigures,
    /// The number of reference conformers whose energy was requested.
    pub references: u64,
    /// Of these, the number with an energy.
    pub references_with_energy: u64,
    /// The results of each text.
    #[serde(skip)]
    pub texts: Vec<TextEnergy>,
}

/// The energy figures of a file or a model, or of one of its logit processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyFigures {
    /// The name of the file, or of the model in an evaluation.
    pub file: String,
    /// The model, where records name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The logit processor.
    pub lp: Option<String>,
    /// The number of texts whose energy was requested.
    pub texts: u64,
    /// Of these, the number with an energy.
    pub with_energy: u64,
    /// The number of texts at which the program was killed because it wrote nothing.
    pub timed_out: u64,
    /// The strain over all texts that have one.
    pub strain: Option<StrainFigures>,
    /// The strain over the valid texts among them.
    pub strain_of_valid: Option<StrainFigures>,
}

/// Strain over texts, in kcal/mol.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StrainFigures {
    /// The number of texts.
    pub texts: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The 90th percentile.
    pub percentile_90: f64,
}

/// The energy of one text: a line of the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextEnergy {
    /// The name of the file, or of the model in an evaluation.
    pub file: String,
    /// The position of the text in the file.
    pub record: String,
    /// The model, where the record names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The logit processor, where the record names one.
    pub lp: Option<String>,
    /// The SMILES of its molecule.
    pub smiles: String,
    /// Whether it breaks no chemistry rule.
    pub valid: bool,
    /// Its energy in kcal/mol; `None` if the program has no answer.
    pub energy: Option<f64>,
    /// The energy of the relaxed conformer, in kcal/mol.
    pub relaxed: Option<f64>,
    /// The lowest energy among the references of its molecule, in kcal/mol.
    pub reference: Option<f64>,
    /// Its energy minus that of the relaxed conformer, or otherwise of the best reference, in kcal/mol.
    pub strain: Option<f64>,
    /// Whether the program was killed while it worked on this text.
    pub timed_out: bool,
}

/// Returns the figures over the texts of all files, or of all models. `references` returns the reference conformers of a skeleton.
///
/// # Errors
/// As [`Energies::of`], which is also called for the references.
pub fn energy_report<'r>(
    energies: &Energies,
    files: &[(&str, &[AnsweredText])],
    references: impl Fn(&str) -> Option<&'r [Conformation]>,
    job: &Job,
) -> Result<EnergyReport> {
    let mut best = Best::default();
    let smiles = files.iter().flat_map(|(_, texts)| texts.iter().map(|text| &*text.smiles));
    best.ask(energies, references, smiles, job)?;
    best.relaxes = files.iter().any(|(_, texts)| texts.iter().any(|text| text.answer.relaxed.is_some()));
    let mut texts: Vec<TextEnergy> = Vec::new();
    for (file, answered) in files {
        texts.extend(answered.iter().map(|text| best.energy_of(file, text)));
    }
    let mut groups: Vec<Vec<&TextEnergy>> = Vec::new();
    for text in &texts {
        match groups.iter_mut().find(|group| group[0].row() == text.row()) {
            Some(group) => group.push(text),
            None => groups.push(vec![text]),
        }
    }
    let all: Vec<&TextEnergy> = texts.iter().collect();
    Ok(EnergyReport {
        schema: ENERGY_SCHEMA.to_owned(),
        command: energies.plan.command.clone(),
        unit: energies.plan.unit,
        files: groups.iter().map(|group| EnergyFigures::of(group[0].row(), group)).collect(),
        total: EnergyFigures::of(("total", None, None), &all),
        references: best.references,
        references_with_energy: best.with_energy,
        texts,
    })
}

/// The lowest energies of references, by SMILES.
#[derive(Default)]
struct Best {
    least: BTreeMap<String, f64>,
    /// Whether the program relaxes conformers.
    relaxes: bool,
    references: u64,
    with_energy: u64,
}

impl Best {
    fn ask<'t, 'r>(
        &mut self,
        energies: &Energies,
        references: impl Fn(&str) -> Option<&'r [Conformation]>,
        smiles: impl Iterator<Item = &'t str>,
        job: &Job,
    ) -> Result<()> {
        let (mut frames, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
        // The references of a molecule are requested once, however many texts it has.
        for smiles in smiles.filter(|smiles| seen.insert(*smiles)) {
            let key = skeleton::from_smiles(smiles).ok();
            let Some(conformers) = key.and_then(|key| references(&key)) else { continue };
            let Ok(checker) = Chemistry::from_smiles(smiles) else { continue };
            let elements: Vec<&'static str> = checker.elements().collect();
            let fits = conformers.iter().filter(|points| points.len() == elements.len());
            frames.extend(fits.map(|points| EnergyFrame {
                smiles: smiles.to_owned(),
                elements: elements.clone(),
                points: points.clone(),
            }));
        }
        for (frame, answer) in frames.iter().zip(energies.of(&frames, job)?) {
            self.references += 1;
            let Some(energy) = answer.energy else { continue };
            self.with_energy += 1;
            let least = self.least.entry(frame.smiles.clone()).or_insert(energy);
            *least = least.min(energy);
        }
        Ok(())
    }

    fn energy_of(&self, file: &str, text: &AnsweredText) -> TextEnergy {
        let EnergyAnswer { energy, relaxed, timed_out } = text.answer;
        let reference = self.least.get(&text.smiles).copied();
        let least = if self.relaxes { relaxed } else { reference };
        TextEnergy {
            file: file.to_owned(),
            record: text.record.clone(),
            model: text.model.clone(),
            lp: text.lp.clone(),
            smiles: text.smiles.clone(),
            valid: text.valid,
            energy,
            relaxed,
            reference,
            strain: energy.zip(least).map(|(energy, least)| energy - least),
            timed_out,
        }
    }
}

impl TextEnergy {
    /// Returns its file, its model and its logit processor.
    fn row(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.file, self.model.as_deref(), self.lp.as_deref())
    }
}

impl EnergyFigures {
    fn of(row: (&str, Option<&str>, Option<&str>), texts: &[&TextEnergy]) -> Self {
        let (file, model, lp) = row;
        let count = |is: fn(&TextEnergy) -> bool| texts.iter().filter(|text| is(text)).count() as u64;
        let strain = |is: fn(&TextEnergy) -> bool| {
            let strains = texts.iter().filter(|text| is(text)).filter_map(|text| text.strain);
            StrainFigures::of(strains.collect())
        };
        EnergyFigures {
            file: file.to_owned(),
            model: model.map(str::to_owned),
            lp: lp.map(str::to_owned),
            texts: texts.len() as u64,
            with_energy: count(|text| text.energy.is_some()),
            timed_out: count(|text| text.timed_out),
            strain: strain(|_| true),
            strain_of_valid: strain(|text| text.valid),
        }
    }
}

impl StrainFigures {
    /// Returns the figures over strains, one for each text; `None` without strains.
    fn of(mut strains: Vec<f64>) -> Option<Self> {
        strains.sort_by(f64::total_cmp);
        let n = strains.len();
        // Nearest rank: the smallest value that at least this share of all values do not exceed.
        let rank = |share: f64| strains.get(((share * n as f64).ceil() as usize).saturating_sub(1)).copied();
        Some(StrainFigures {
            texts: n as u64,
            mean: strains.iter().sum::<f64>() / n as f64,
            median: f64::midpoint(*strains.get(n / 2)?, strains[(n - 1) / 2]),
            percentile_90: rank(0.9)?,
        })
    }
}
