//! Reference conformers, and the comparison of generated ones with them, molecule by molecule.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::chemistry::{Chemistry, ChemistryReport, MoleculeChemistry};
use super::coverage::{Deviations, MissingPolicy};
use super::geometry::{COVERAGE_THRESHOLD_ANGSTROM, Conformation, Coverage, Topology};
use super::judging::reordered;
use super::other_molecules::OtherMolecules;
use super::prompt_matcher::{FoundPrompts, PromptMatcher};
use super::sample::in_angstrom;
use crate::corpus::{AtomOrder, Conformers, ReadSummary};
use crate::parameter;
use crate::stats::bootstrap::Mean;
use drift_core::chem::{AtomLimit, Isotopes};
use drift_core::encoding::{Precision, Reading};
use drift_core::text::skeleton::smiles;
use drift_core::{Encoding, Error, Job, Result};

/// The seed of bootstrap intervals.
const SEED: u64 = 0;

/// Reference conformers by skeleton.
#[derive(Debug, Default)]
pub struct References {
    molecules: BTreeMap<Box<str>, Reference>,
    /// The molecules that no text was requested for, by skeleton, with the number of their references.
    without_text: BTreeMap<Box<str>, usize>,
    /// The isomers whose texts are compared under a pool that their own conformers do not fit.
    unpooled: BTreeSet<Box<str>>,
}

/// The references of the molecules of prompts.
#[derive(Debug, Default)]
pub struct PromptReferences {
    own: References,
    /// By the skeleton of the SMILES that pools isomers.
    pools: References,
}

/// The references of one molecule.
#[derive(Debug)]
pub struct Reference {
    /// The bonds and symmetries of the molecule.
    pub topology: Topology,
    /// The positions of its conformers, in Å.
    pub conformers: Vec<Conformation>,
}

/// The comparison of one molecule's generated conformers with its references.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoleculeGeometry {
    /// The mean of [`Topology::bond_length_errors`] over the generated conformers, in Å.
    pub bond_length_error_angstrom: Option<f64>,
    /// Coverage of the references, and the reverse.
    pub coverage: Coverage,
}

/// Geometry over molecules. Every estimate is a mean over the molecules that have the value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeometryReport {
    /// The number of molecules that have references.
    pub molecules: u64,
    /// The number of these with a usable generated conformer, that is, one that passes.
    pub molecules_with_conformers: u64,
    /// The number of usable generated conformers.
    pub conformers: u64,
    /// The number of references of these molecules.
    pub references: u64,
    /// The number of molecules with references but no usable conformer that are left out of these figures.
    #[serde(default)]
    pub left_out: u64,
    /// The number of molecules with references for which there is no text at all, whether they are left out or not.
    #[serde(default)]
    pub without_text: u64,
    /// How many RMSDs, over all pairs, are upper bounds because the search was cut off by too much symmetry.
    #[serde(default)]
    pub rmsd_upper_bounds: u64,
    /// The mean over bonds of the deviation from the references' mean length, in Å.
    pub bond_length_error_angstrom: Option<Mean>,
    /// MAT-R, in Å.
    pub mat_recall_angstrom: Option<Mean>,
    /// MAT-P, in Å.
    pub mat_precision_angstrom: Option<Mean>,
}

/// Returns how files of references are read, for texts of an encoding. A reference in text keeps the values of its own encoding, so that
/// a text has a distance of exactly 0 to itself. Other files are read in the decimals of the texts, or in four with other encodings.
pub fn reference_reading(texts: Encoding) -> Reading {
    let decimals = if texts.is_decimal() { texts } else { Encoding::FIXED };
    // References may have more decimals than the model writes.
    let cut = texts.precision() != Precision::FOUR;
    Reading { cut, rewrites: true, as_written: true, ..Reading::new(decimals) }
}

impl References {
    /// Reads the conformers of the wanted skeletons, in any order of atoms, and counts those of other molecules. `pools` maps the
    /// skeletons of isomers to that of their pool.
    ///
    /// # Errors
    /// If the corpus cannot be read, the job was cancelled, or it contains no wanted molecule.
    pub(super) fn read(
        corpus: &dyn Conformers,
        wanted: &BTreeSet<&str>,
        pools: &BTreeMap<Box<str>, Box<str>>,
        isotopes: Isotopes,
        job: &Job,
    ) -> Result<(Self, ReadSummary)> {
        let wanted: Vec<(String, &str)> =
            wanted.iter().map(|skeleton| (smiles(skeleton), *skeleton)).collect();
        let prompts = wanted.iter().map(|(smiles, skeleton)| (&**smiles, *skeleton));
        let mut matcher = PromptMatcher::new(prompts, isotopes);
        let (mut found, mut others) = (BySkeleton::new(), OtherMolecules::new(isotopes));
        let requested = corpus.reading().encoding;
        let summary = corpus.read(job, &mut |batch| {
            // Without a text, the atom order is not that of a SMILES.
            for conformer in batch.conformers.iter().filter(|one| one.order == AtomOrder::Smiles) {
                let encoding = conformer.encoding.unwrap_or(requested);
                let FoundPrompts::Prompts(prompts) = matcher.find(conformer, encoding) else {
                    others.add(&conformer.skeleton);
                    continue;
                };
                others.leave_out(&conformer.skeleton);
                let points = in_angstrom(&conformer.coordinates, encoding);
                let skeletons = || prompts.iter().map(|prompt| wanted[prompt.prompt].1);
                // The conformers of an isomer are added to its pool later.
                let pooled: Vec<&str> = skeletons().filter_map(|own| Some(&**pools.get(own)?)).collect();
                for (skeleton, prompt) in skeletons().zip(&prompts) {
                    if !pooled.contains(&skeleton) {
                        found.entry(skeleton.into()).or_default().extend(prompt.ordered(&points));
                    }
                }
            }
            Ok(())
        })?;
        if found.is_empty() {
            let problem = "contain none of the molecules that were generated";
            let remedy = "give the conformers of the prompts, as enriched text or with their SMILES";
            return Err(Error::parameter(parameter::REFERENCES, problem, remedy));
        }
        let molecules = found.into_iter().filter_map(|(skeleton, conformers)| {
            // A skeleton whose text is not a SMILES has no bonds to compare.
            let topology = Topology::with_isotopes(&skeleton, isotopes).ok()?;
            Some((skeleton, Reference { topology, conformers }))
        });
        let (molecules, without_text) = (molecules.collect(), others.counts());
        Ok((References { molecules, without_text, unpooled: BTreeSet::new() }, summary))
    }

    /// Without the molecules that no text was requested for. Files of `drift generate` hold a text for each molecule that was asked.
    #[must_use]
    pub(super) fn of_texts(self) -> Self {
        References { without_text: BTreeMap::new(), ..self }
    }

    /// Adds the conformers of a skeleton, if there are any.
    fn add(&mut self, skeleton: &str, conformers: Vec<Conformation>) -> Result<()> {
        if conformers.is_empty() {
            return Ok(());
        }
        let topology = Topology::new(skeleton)
            .map_err(|e| Error::input(smiles(skeleton), e, "leave this molecule out"))?;
        self.molecules.insert(skeleton.into(), Reference { topology, conformers });
        Ok(())
    }

    /// Returns the references of a skeleton.
    pub fn get(&self, skeleton: &str) -> Option<&Reference> {
        self.molecules.get(skeleton)
    }

    /// Returns the chemistry of all references.
    pub fn chemistry(&self) -> ChemistryReport {
        let molecules = self.molecules.par_iter().map(|(skeleton, reference)| {
            let chemistry = Chemistry::from_smiles(&smiles(skeleton)).ok();
            let found = reference.conformers.iter().map(|points| chemistry.as_ref()?.check(points));
            MoleculeChemistry::from_conformers(found)
        });
        ChemistryReport::from_molecules(molecules.collect::<Vec<MoleculeChemistry>>().iter())
    }

    /// Compares generated conformers, by skeleton of the prompt. A prompt without a usable conformer has an empty list.
    /// Molecules with references and without any text have empty results.
    pub(super) fn measure(&self, generated: &BySkeleton) -> DeviationsBySkeleton {
        let measured = self.molecules.par_iter().filter(|(skeleton, _)| !self.unpooled.contains(*skeleton));
        let compared = measured.filter_map(|(skeleton, reference)| {
            let generated = generated.get(skeleton).map_or(&[][..], Vec::as_slice);
            Some((skeleton.clone(), reference.deviations(generated)?))
        });
        let mut measured: DeviationsBySkeleton = compared.collect();
        let none = |references: usize| Deviations { references, ..Deviations::default() };
        measured.extend(self.without_text.iter().map(|(skeleton, count)| (skeleton.clone(), none(*count))));
        measured
    }

    /// Returns the references with those of several molecules pooled under one skeleton, which `pools` maps to. Atoms are reordered to
    /// match it. Molecules whose graph differs stay separate.
    #[must_use]
    pub(super) fn pooled(
        mut self,
        pools: &BTreeMap<Box<str>, Box<str>>,
        is_compared: impl Fn(&str) -> bool,
        limit: AtomLimit,
        isotopes: Isotopes,
    ) -> Self {
        for (own, pool) in pools {
            let Some(reference) = self.molecules.get(own) else { continue };
            let moved = reference.conformers.iter();
            let moved = moved.map(|points| reordered(points.clone(), own, pool, limit));
            let Some(moved) = moved.collect::<Option<Vec<Conformation>>>() else {
                self.unpooled.extend((!is_compared(own)).then(|| own.clone()));
                continue;
            };
            // If the prompt is also compared under its own SMILES, its references stay there too.
            if !is_compared(own) {
                self.molecules.remove(own);
            }
            match self.molecules.get_mut(pool) {
                Some(known) => known.conformers.extend(moved),
                None => {
                    let Ok(topology) = Topology::with_isotopes(pool, isotopes) else { continue };
                    self.molecules.insert(pool.clone(), Reference { topology, conformers: moved });
                }
            }
        }
        self
    }
}

impl PromptReferences {
    /// Adds the conformers of a prompt's own molecule, given by its skeleton.
    ///
    /// # Errors
    /// If the skeleton has no bonds that can be read.
    pub fn add(&mut self, skeleton: &str, conformers: Vec<Conformation>) -> Result<()> {
        self.own.add(skeleton, conformers)
    }

    /// Adds the conformers of a pool of isomers, given by the skeleton of the SMILES that pools them.
    ///
    /// # Errors
    /// As [`PromptReferences::add`].
    pub(crate) fn add_pool(&mut self, skeleton: &str, conformers: Vec<Conformation>) -> Result<()> {
        self.pools.add(skeleton, conformers)
    }

    /// Returns whether there is no conformer.
    pub fn is_empty(&self) -> bool {
        self.own.molecules.is_empty() && self.pools.molecules.is_empty()
    }

    /// Returns the references of each prompt's own molecule.
    pub fn own(&self) -> &References {
        &self.own
    }

    /// Returns the chemistry of the references of each prompt's own molecule; `None` if there are none.
    pub fn chemistry(&self) -> Option<ChemistryReport> {
        (!self.own.molecules.is_empty()).then(|| self.own.chemistry())
    }

    /// Returns the references that texts of a skeleton are compared with.
    pub(super) fn compared(&self, skeleton: &str) -> Option<&Reference> {
        self.pools.get(skeleton).or_else(|| self.own.get(skeleton))
    }

    /// Compares generated conformers, by the skeleton that they are compared under. Molecules without references are left out.
    pub(super) fn measure(&self, generated: &BySkeleton) -> DeviationsBySkeleton {
        let compared = generated.par_iter().filter_map(|(skeleton, conformers)| {
            Some((skeleton.clone(), self.compared(skeleton)?.deviations(conformers)?))
        });
        compared.collect()
    }
}

/// The comparison of generated conformers with the references, by skeleton.
pub(super) type DeviationsBySkeleton = BTreeMap<Box<str>, Deviations>;

/// Adds the comparisons of further conformers.
pub(super) fn join(all: &mut DeviationsBySkeleton, more: &DeviationsBySkeleton) {
    for (skeleton, deviations) in more {
        match all.get_mut(skeleton) {
            Some(known) => known.append(deviations.clone()),
            None => _ = all.insert(skeleton.clone(), deviations.clone()),
        }
    }
}

/// Conformers by skeleton, in Å.
pub(super) type BySkeleton = BTreeMap<Box<str>, Vec<Conformation>>;

/// Returns the conformers of a corpus by skeleton, in Å: those whose atoms are in the order of a SMILES. `wanted` restricts them to some
/// molecules.
///
/// # Errors
/// If the corpus cannot be read, or the job was cancelled.
pub(super) fn conformers_by_skeleton(
    corpus: &dyn Conformers,
    wanted: Option<&HashSet<Box<str>>>,
    job: &Job,
) -> Result<(BySkeleton, ReadSummary)> {
    let mut found = BySkeleton::new();
    let encoding = corpus.reading().encoding;
    let summary = corpus.read(job, &mut |batch| {
        for conformer in &batch.conformers {
            let is_wanted = wanted.is_none_or(|wanted| wanted.contains(&*conformer.skeleton));
            // Without a text, the atom order is not that of a SMILES.
            if conformer.order == AtomOrder::Smiles && is_wanted {
                let conformers = found.entry((*conformer.skeleton).into()).or_default();
                conformers.push(in_angstrom(&conformer.coordinates, conformer.encoding.unwrap_or(encoding)));
            }
        }
        Ok(())
    })?;
    Ok((found, summary))
}

impl GeometryReport {
    /// Returns the report from the comparisons of molecules.
    pub(crate) fn of_deviations(molecules: &[&Deviations]) -> Self {
        let geometry: Vec<MoleculeGeometry> =
            molecules.iter().filter_map(|one| MoleculeGeometry::from_deviations(one)).collect();
        let mean = |value: &dyn Fn(&MoleculeGeometry) -> Option<f64>| {
            Mean::from_values(&geometry.iter().filter_map(value).collect::<Vec<f64>>(), SEED)
        };
        let count = |of: fn(&Deviations) -> usize| molecules.iter().map(|one| of(one) as u64).sum();
        GeometryReport {
            molecules: molecules.len() as u64,
            molecules_with_conformers: count(|one| usize::from(!one.rmsd.is_empty())),
            conformers: count(|one| one.rmsd.len()),
            references: count(|one| one.references),
            left_out: 0,
            without_text: 0,
            rmsd_upper_bounds: molecules.iter().flat_map(|one| &one.upper_bounds).sum(),
            bond_length_error_angstrom: mean(&|m| m.bond_length_error_angstrom),
            mat_recall_angstrom: mean(&|m| m.coverage.mat_recall_angstrom),
            mat_precision_angstrom: mean(&|m| m.coverage.mat_precision_angstrom),
        }
    }

    /// Returns what a reader of the figures should know: one sentence each.
    pub(super) fn warnings(&self, missing: MissingPolicy) -> impl Iterator<Item = String> {
        self.inexact().into_iter().chain(self.uncovered(missing))
    }

    /// Returns a sentence, if molecules of the references have no text and count 0.
    fn uncovered(&self, missing: MissingPolicy) -> Option<String> {
        let (count, all) = (self.without_text, self.molecules);
        (count > 0 && missing == MissingPolicy::Zero).then(|| {
            format!("{count} of the {all} molecules of the references have no text and count 0 in COV")
        })
    }

    /// Returns a sentence, if some RMSDs are upper bounds.
    pub(crate) fn inexact(&self) -> Option<String> {
        let count = self.rmsd_upper_bounds;
        (count > 0).then(|| {
            format!("{count} of the deviations behind COV and MAT are upper bounds, because their molecules are too symmetric")
        })
    }
}

impl MoleculeGeometry {
    /// Returns the geometry at the threshold that 3DMolGen reports; `None` without references.
    pub(crate) fn from_deviations(deviations: &Deviations) -> Option<Self> {
        Some(MoleculeGeometry {
            bond_length_error_angstrom: deviations.bond_length_error(),
            coverage: deviations.coverage(COVERAGE_THRESHOLD_ANGSTROM)?,
        })
    }
}

impl Reference {
    /// Compares generated conformers of this molecule with the references; `None` if the numbers of atoms differ.
    pub fn deviations(&self, generated: &[Conformation]) -> Option<Deviations> {
        self.topology.compare(generated, &self.conformers)
    }
}
