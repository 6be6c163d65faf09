//! The geometry of a run's texts beside the references, molecule by molecule, measured once.

use rayon::prelude::*;

use super::judged::Judged;
use super::subject::Subject;
use drift_data::audit::coverage::Deviations;

/// What the texts of one molecule that has references came to.
pub(super) struct MeasuredMolecule {
    /// Index of the molecule.
    pub subject: usize,
    /// By usable text, its generation; in the order of `deviations`.
    pub generations: Vec<usize>,
    /// What the usable texts are beside the references.
    pub deviations: Deviations,
}

/// Measures the texts of a run, which are ordered by molecule.
pub(super) fn measure(subjects: &[Subject], judged: &[Judged]) -> Vec<MeasuredMolecule> {
    let groups: Vec<&[Judged]> = judged.chunk_by(|a, b| a.subject == b.subject).collect();
    let of_molecule = |texts: &&[Judged]| {
        let subject = texts[0].subject;
        let reference = subjects[subject].reference.as_ref()?;
        let usable = texts.iter().filter_map(|text| Some((text.generation, text.points.clone()?)));
        let (generations, points): (Vec<usize>, Vec<_>) = usable.unzip();
        let deviations = reference.deviations(&points)?;
        Some(MeasuredMolecule { subject, generations, deviations })
    };
    groups.par_iter().filter_map(of_molecule).collect()
}

impl MeasuredMolecule {
    /// Where the text of a generation stands among the usable ones.
    pub(super) fn place(&self, generation: usize) -> Option<usize> {
        // Ascending, since texts of a run lie sorted by molecule and generation.
        self.generations.binary_search(&generation).ok()
    }
}
