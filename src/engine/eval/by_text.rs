//! The results for each text of a run: one line per text, and the distances of all pairs.

use std::borrow::Cow;

use super::checkpoint::Checkpoint;
use super::judged::Judged;
use super::measured::MeasuredMolecule;
use super::run::Run;
use super::subject::Subject;
use drift_core::encoding::Encoding;
use drift_data::audit::geometry::{Conformation, Topology};
use drift_data::audit::{
    ConformerVerdict, DUPLICATE_ANGSTROM, MoleculeDistances, RmsdMatrix, VerdictLine, duplicates,
};

/// The lines and distances of an evaluation, text by text.
#[derive(Debug, Default)]
pub struct TextFigures {
    /// One line per text, ordered by run, molecule and generation.
    pub lines: Vec<VerdictLine>,
    /// The distances by molecule, of all runs together.
    pub matrix: RmsdMatrix<'static>,
}

impl TextFigures {
    /// Adds the texts of a run, which are ordered by molecule.
    pub(super) fn add(
        &mut self,
        checkpoint: &Checkpoint,
        subjects: &[Subject],
        (run, measured): (&Run, &[MeasuredMolecule]),
    ) {
        for texts in run.judged.chunk_by(|a, b| a.group == b.group) {
            let group = &subjects[texts[0].group];
            let measured = MeasuredMolecule::of_group(measured, texts[0].group);
            let same = same(subjects, texts, self.lines.len());
            let references = measured.map_or(0, |one| one.deviations.references);
            let mut distances = MoleculeDistances::new(group.measured_as().0.to_owned(), references);
            for (text, duplicate_of) in texts.iter().zip(same) {
                let subject = &subjects[text.subject];
                let mut verdict = verdict(subject, text, checkpoint.encoding);
                let place = measured.and_then(|one| Some((one, one.place(text)?)));
                if let Some((measured, at)) = place {
                    verdict.set_distances(&measured.deviations.rmsd[at], measured.deviations.bond_errors[at]);
                }
                verdict.references = references as u64;
                let row = place.map(|(one, at)| Cow::Owned(one.deviations.rmsd[at].clone()));
                distances.push(self.lines.len() as u64, row);
                self.lines.push(VerdictLine {
                    id: self.lines.len().to_string(),
                    file: None,
                    record: None,
                    model: Some(checkpoint.name.clone()),
                    lp: Some(run.processor.name().to_owned()),
                    placeholder: run.placeholder.clone(),
                    smiles: Some(subject.molecule.smiles.clone()),
                    geom_smiles: subject.pool.as_ref().map(|pool| pool.molecule.smiles.clone()),
                    generation: text.generation as u64,
                    place: 0,
                    duplicate_of,
                    verdict,
                });
            }
            if references > 0 {
                self.matrix.molecules.push(distances);
            }
        }
    }
}

fn verdict(subject: &Subject, text: &Judged, encoding: Encoding) -> ConformerVerdict {
    let chemistry = text.points.as_ref().and_then(|points| subject.chemistry.as_ref()?.check(points));
    let prompt = Some(&*subject.molecule.smiles);
    ConformerVerdict::new((&text.text, encoding), &text.verdict, prompt, chemistry.as_ref())
}

/// For each text, the line of the molecule's first text with the same conformer, if any. `first` is the line of the molecule's
/// first text.
fn same(subjects: &[Subject], texts: &[Judged], first: usize) -> Vec<Option<usize>> {
    let mut out = vec![None; texts.len()];
    let points = |text: &Judged| text.measured_points(&subjects[text.subject]).cloned();
    let usable = texts.iter().enumerate().filter_map(|(at, text)| Some((at, points(text)?)));
    let (places, points): (Vec<usize>, Vec<Conformation>) = usable.unzip();
    if points.len() > 1
        && let Ok(topology) = Topology::new(subjects[texts[0].group].measured_as().1)
    {
        for (own, twin) in duplicates(&topology, &points, DUPLICATE_ANGSTROM).into_iter().enumerate() {
            out[places[own]] = twin.map(|twin| first + places[twin]);
        }
    }
    out
}
