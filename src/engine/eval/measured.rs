//! The geometry of a run's texts beside the references, molecule by molecule, measured once. Isomers that are pooled are one molecule.

use rayon::prelude::*;

use super::judged::Judged;
use super::subject::Subject;
use drift_data::audit::coverage::Deviations;

/// What the texts of one molecule that has references came to.
pub(super) struct MeasuredMolecule {
    /// Index of the molecule; of a pool, that of its first isomer.
    pub group: usize,
    /// By usable text, its subject and generation; in the order of `deviations`.
    pub texts: Vec<(usize, usize)>,
    /// What the usable texts are beside the references.
    pub deviations: Deviations,
}

/// Measures the texts of a run, which are ordered by molecule.
pub(super) fn measure(subjects: &[Subject], judged: &[Judged]) -> Vec<MeasuredMolecule> {
    let groups: Vec<&[Judged]> = judged.chunk_by(|a, b| a.group == b.group).collect();
    let of_molecule = |texts: &&[Judged]| {
        let group = texts[0].group;
        let (_, _, reference) = subjects[group].measured_as();
        let usable = texts.iter().filter_map(|text| {
            Some(((text.subject, text.generation), text.measured_points(&subjects[text.subject])?.clone()))
        });
        let (texts, points): (Vec<_>, Vec<_>) = usable.unzip();
        let deviations = reference?.deviations(&points)?;
        Some(MeasuredMolecule { group, texts, deviations })
    };
    groups.par_iter().filter_map(of_molecule).collect()
}

impl MeasuredMolecule {
    /// Where a text stands among the usable ones.
    pub(super) fn place(&self, text: &Judged) -> Option<usize> {
        self.place_of((text.subject, text.generation))
    }

    /// The same by its subject and generation.
    pub(super) fn place_of(&self, text: (usize, usize)) -> Option<usize> {
        // Ascending, since texts of a run lie sorted by molecule and generation.
        self.texts.binary_search(&text).ok()
    }
}
