//! Reference conformers, and what generated ones are beside them, molecule by molecule.

use std::collections::{BTreeMap, HashSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::chemistry::{Chemistry, ChemistryReport, MoleculeChemistry};
use super::coverage::Deviations;
use super::geometry::{COVERAGE_THRESHOLD_ANGSTROM, Conformation, Coverage, Topology};
use super::judging::reordered;
use super::sample::in_angstrom;
use crate::corpus::{AtomOrder, Conformers, ReadSummary};
use crate::parameter;
use crate::stats::bootstrap::Mean;
use drift_core::chem::AtomLimit;
use drift_core::error::{Error, Result};
use drift_core::job::Job;
use drift_core::text::skeleton::smiles;

/// The seed of bootstrap intervals.
const SEED: u64 = 0;

/// Reference conformers by skeleton.
#[derive(Debug, Default)]
pub struct References {
    molecules: BTreeMap<Box<str>, Reference>,
}

/// The references of one molecule.
#[derive(Debug)]
pub struct Reference {
    /// Its bonds and symmetries.
    pub topology: Topology,
    /// Its conformers, in Å.
    pub conformers: Vec<Conformation>,
}

/// What the generated conformers of one molecule are beside its references.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoleculeGeometry {
    /// The mean of [`Topology::bond_length_error`] over the generated conformers, in Å.
    pub bond_length_error_angstrom: Option<f64>,
    /// Coverage both ways.
    pub coverage: Coverage,
}

/// Geometry over molecules; every estimate is a mean over those that have the value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeometryReport {
    /// Molecules with references that were asked for.
    pub molecules: u64,
    /// Molecules among them with a usable generated conformer: those that pass.
    pub molecules_with_conformers: u64,
    /// Usable generated conformers.
    pub conformers: u64,
    /// Their references.
    pub references: u64,
    /// Molecules with references and without a usable conformer that are left out of these figures.
    #[serde(default)]
    pub left_out: u64,
    /// Of coverage, in Å.
    pub threshold_angstrom: f64,
    /// Deviations among those of all pairs that are upper bounds: their molecules have too much symmetry for the search to end.
    #[serde(default)]
    pub rmsd_upper_bounds: u64,
    /// Mean over bonds of the difference from the references' mean length, in Å.
    pub bond_length_error_angstrom: Option<Mean>,
    /// COV-R; a molecule without a usable conformer counts as 0.
    pub cov_recall: Option<Mean>,
    /// MAT-R, in Å.
    pub mat_recall_angstrom: Option<Mean>,
    /// COV-P.
    pub cov_precision: Option<Mean>,
    /// MAT-P, in Å.
    pub mat_precision_angstrom: Option<Mean>,
}

impl References {
    /// Reads the conformers of the skeletons that are wanted.
    ///
    /// # Errors
    /// If the corpus cannot be read, the job was cancelled, or no wanted molecule is in it.
    pub fn read(corpus: &dyn Conformers, wanted: &HashSet<&str>, job: &Job) -> Result<(Self, ReadSummary)> {
        let wanted = wanted.iter().map(|skeleton| (*skeleton).into()).collect();
        let (found, summary) = conformers_by_skeleton(corpus, Some(&wanted), job)?;
        if found.is_empty() {
            let problem = "contain none of the molecules that were generated";
            let remedy = "give the conformers of the prompts, as enriched text in the same atom order";
            return Err(Error::parameter(parameter::REFERENCES, problem, remedy));
        }
        let molecules = found.into_iter().filter_map(|(skeleton, conformers)| {
            // A skeleton whose SMILES is none has no bonds to compare.
            let topology = Topology::new(&skeleton).ok()?;
            Some((skeleton, Reference { topology, conformers }))
        });
        Ok((References { molecules: molecules.collect() }, summary))
    }

    /// The references of a skeleton.
    pub fn get(&self, skeleton: &str) -> Option<&Reference> {
        self.molecules.get(skeleton)
    }

    /// The chemistry of all of them.
    pub fn chemistry(&self) -> ChemistryReport {
        let of_molecule = |(skeleton, reference): (&str, &Reference)| {
            let chemistry = Chemistry::from_smiles(&smiles(skeleton)).ok();
            let found = reference.conformers.iter().map(|points| chemistry.as_ref()?.check(points));
            MoleculeChemistry::from_conformers(found)
        };
        let molecules: Vec<MoleculeChemistry> = self
            .molecules
            .par_iter()
            .map(|(skeleton, reference)| of_molecule((skeleton, reference)))
            .collect();
        ChemistryReport::from_molecules(molecules.iter())
    }

    /// Compares generated conformers, by skeleton of the prompt; a prompt without a usable conformer has an empty list.
    pub(super) fn measure(&self, generated: &BTreeMap<Box<str>, Vec<Conformation>>) -> Measured {
        let pairs = generated.iter().map(|(skeleton, generated)| (&**skeleton, generated));
        let pairs: Vec<(&str, &Vec<Conformation>)> = pairs.collect();
        let compared = |(skeleton, generated): &(&str, &Vec<Conformation>)| {
            Some(((*skeleton).into(), self.get(skeleton)?.deviations(generated)?))
        };
        pairs.par_iter().filter_map(compared).collect()
    }

    /// The same references with those of several molecules under one skeleton: `pools` says under which. Atoms are put in its order;
    /// molecules that are not its graph stay by themselves.
    #[must_use]
    pub(super) fn pooled(
        mut self,
        pools: &BTreeMap<Box<str>, Box<str>>,
        is_compared: impl Fn(&str) -> bool,
        limit: AtomLimit,
    ) -> Self {
        for (own, pool) in pools {
            let Some(reference) = self.molecules.get(own) else { continue };
            let moved: Option<Vec<Conformation>> = reference
                .conformers
                .iter()
                .map(|points| reordered(points.clone(), own, pool, limit))
                .collect();
            let Some(moved) = moved else { continue };
            // References of a prompt that is compared under its own SMILES too stay there as well.
            if !is_compared(own) {
                self.molecules.remove(own);
            }
            match self.molecules.get_mut(pool) {
                Some(known) => known.conformers.extend(moved),
                None => {
                    let Ok(topology) = Topology::new(pool) else { continue };
                    self.molecules.insert(pool.clone(), Reference { topology, conformers: moved });
                }
            }
        }
        self
    }
}

/// What generated conformers are beside the references, by skeleton.
pub(super) type Measured = BTreeMap<Box<str>, Deviations>;

/// Conformers by skeleton, in Å.
pub(super) type BySkeleton = BTreeMap<Box<str>, Vec<Conformation>>;

/// The conformers of a corpus by skeleton, in Å: those that have their atoms in the order of a SMILES; `wanted` leaves out other molecules.
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
            // Without a text the order of atoms is not that of a SMILES.
            if conformer.order == AtomOrder::Smiles && is_wanted {
                let conformers = found.entry((*conformer.skeleton).into()).or_default();
                conformers.push(in_angstrom(&conformer.coordinates, encoding));
            }
        }
        Ok(())
    })?;
    Ok((found, summary))
}

impl GeometryReport {
    /// From what is known of each molecule.
    pub fn of_deviations(molecules: &[&Deviations]) -> Self {
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
            threshold_angstrom: COVERAGE_THRESHOLD_ANGSTROM,
            rmsd_upper_bounds: molecules.iter().flat_map(|one| &one.upper_bounds).sum(),
            bond_length_error_angstrom: mean(&|m| m.bond_length_error_angstrom),
            cov_recall: mean(&|m| Some(m.coverage.cov_recall)),
            mat_recall_angstrom: mean(&|m| m.coverage.mat_recall_angstrom),
            cov_precision: mean(&|m| m.coverage.cov_precision),
            mat_precision_angstrom: mean(&|m| m.coverage.mat_precision_angstrom),
        }
    }

    /// A sentence where some deviations are upper bounds.
    pub fn inexact(&self) -> Option<String> {
        let count = self.rmsd_upper_bounds;
        (count > 0).then(|| {
            format!("{count} of the deviations behind COV and MAT are upper bounds, because their molecules are too symmetric")
        })
    }
}

impl MoleculeGeometry {
    /// At the threshold that the users report; none without references.
    pub fn from_deviations(deviations: &Deviations) -> Option<Self> {
        Some(MoleculeGeometry {
            bond_length_error_angstrom: deviations.bond_length_error(),
            coverage: deviations.coverage(COVERAGE_THRESHOLD_ANGSTROM)?,
        })
    }
}

impl Reference {
    /// What generated conformers of this molecule are beside its own; `None` if the numbers of atoms differ.
    pub fn deviations(&self, generated: &[Conformation]) -> Option<Deviations> {
        self.topology.compare(generated, &self.conformers)
    }
}
