//! The chemistry of a run's texts, and of the references with the same method.

use rayon::prelude::*;

use super::judged::Judged;
use super::record::WorstText;
use super::subject::Subject;
use drift_data::audit::align::{aligned_rmsd, superposed};
use drift_data::audit::chemistry::{ChemistryReport, ConformerChemistry, MoleculeChemistry};
use drift_data::audit::geometry::Conformation;

/// The number of the worst texts of a run that are kept.
const WORST: usize = 3;

/// The chemistry of a run's texts, and the worst of them.
pub(super) fn chemistry(subjects: &[Subject], judged: &[Judged]) -> (ChemistryReport, Vec<WorstText>) {
    let groups: Vec<&[Judged]> = judged.chunk_by(|a, b| a.group == b.group).collect();
    let of_molecule = |texts: &&[Judged]| {
        MoleculeChemistry::from_conformers(texts.iter().map(|text| check(subjects, text)))
    };
    let molecules: Vec<MoleculeChemistry> = groups.par_iter().map(of_molecule).collect();
    (ChemistryReport::from_molecules(molecules.iter()), worst(subjects, &groups))
}

/// The chemistry of all molecules' references with the same method; `None` if there are no references.
pub(super) fn of_references(subjects: &[Subject]) -> Option<ChemistryReport> {
    let of_molecule = |subject: &Subject| {
        let conformers = &subject.reference.as_ref()?.conformers;
        let chemistry = subject.chemistry.as_ref();
        Some(MoleculeChemistry::from_conformers(conformers.iter().map(|points| chemistry?.check(points))))
    };
    let molecules: Vec<MoleculeChemistry> = subjects.par_iter().filter_map(of_molecule).collect();
    (!molecules.is_empty()).then(|| ChemistryReport::from_molecules(molecules.iter()))
}

/// The chemistry of a text; `None` if the text does not pass.
fn check(subjects: &[Subject], text: &Judged) -> Option<ConformerChemistry> {
    subjects[text.subject].chemistry.as_ref()?.check(text.points.as_ref()?)
}

/// The texts that break the most rules per atom, at most one per molecule; the first one if several are equal.
fn worst(subjects: &[Subject], groups: &[&[Judged]]) -> Vec<WorstText> {
    let of_molecule = |texts: &&[Judged]| {
        let broken = |text: &Judged| {
            let found = check(subjects, text)?;
            Some(found.findings.len() as f64 / found.atoms.max(1) as f64)
        };
        let all = texts.iter().enumerate().filter_map(|(at, text)| Some((broken(text)?, at)));
        let (most, at) = all.max_by(|(a, i), (b, j)| a.total_cmp(b).then(j.cmp(i)))?;
        (most > 0.0).then_some((most, texts[0].subject, at))
    };
    let mut found: Vec<(usize, (f64, usize, usize))> = groups
        .par_iter()
        .enumerate()
        .filter_map(|(group, texts)| Some((group, of_molecule(texts)?)))
        .collect();
    found.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let shown = found.into_iter().take(WORST);
    shown.filter_map(|(group, (_, _, at))| worst_text(subjects, &groups[group][at])).collect()
}

fn worst_text(subjects: &[Subject], text: &Judged) -> Option<WorstText> {
    let subject = &subjects[text.subject];
    let (chemistry, points) = (subject.chemistry.as_ref()?, text.points.as_ref()?);
    let references = subject.reference.iter().flat_map(|reference| &reference.conformers);
    let distances = references.map(|conformer| (aligned_rmsd(points, conformer, |atom| atom), conformer));
    let nearest = distances.min_by(|(a, _), (b, _)| a.total_cmp(b));
    let laid = nearest.map_or_else(|| points.clone(), |(_, reference)| superposed(points, reference));
    Some(WorstText {
        smiles: subject.molecule.smiles.clone(),
        generation: text.generation,
        findings: chemistry.check(points)?.findings,
        elements: chemistry.elements().map(str::to_owned).collect(),
        bonds: chemistry.bonds().collect(),
        points: rounded(&laid),
        reference: nearest.map(|(_, reference)| rounded(reference)),
        rmsd_angstrom: nearest.map(|(rmsd, _)| rmsd),
    })
}

/// Rounds to three decimals, which are enough for a picture.
fn rounded(points: &[[f64; 3]]) -> Conformation {
    points.iter().map(|point| point.map(|x| (x * 1e3).round() / 1e3)).collect()
}
