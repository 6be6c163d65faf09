//! Measures the geometry of a run's texts relative to the references, once per molecule. Pooled isomers count as one molecule.

use rayon::prelude::*;

use super::judged::Judged;
use super::subject::Subject;
use drift_data::audit::coverage::Deviations;

/// The results for the texts of one molecule that has references.
pub(super) struct MeasuredMolecule {
    /// The index of the molecule; for a pool, the index of its first isomer.
    pub group: usize,
    /// The molecule index and generation of each usable text, in the order of `deviations`.
    pub texts: Vec<(usize, usize)>,
    /// The deviations of the usable texts from the references.
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
    /// The results of a group, if it has some.
    pub(super) fn of_group(measured: &[MeasuredMolecule], group: usize) -> Option<&MeasuredMolecule> {
        // The texts of a run are sorted by molecule, so groups ascend.
        measured.binary_search_by_key(&group, |one| one.group).ok().map(|at| &measured[at])
    }

    /// The index of a text among the usable ones.
    pub(super) fn place(&self, text: &Judged) -> Option<usize> {
        self.place_of((text.subject, text.generation))
    }

    /// The index of the text with this molecule index and generation.
    pub(super) fn place_of(&self, text: (usize, usize)) -> Option<usize> {
        // The texts of a run are sorted by molecule and generation, so these keys are ascending.
        self.texts.binary_search(&text).ok()
    }
}
