//! The judge: it holds the references by molecule and judges texts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::geometry::Conformation;
use super::super::references::conformers_by_skeleton;
use super::super::sample::{FARTHEST, in_angstrom, split};
use super::molecule::JudgedMolecule;
use super::pieces::conformers_in;
use super::plan::JudgePlan;
use super::points::reordered;
use super::scores::{BatchScores, score};
use crate::corpus::{Conformers, ReadSummary};
use crate::parameter;
use drift_core::encoding::Reading;
use drift_core::error::shortened_end;
use drift_core::text::{parse, skeleton};
use drift_core::{Error, Job, Result};

/// The number of molecules whose rules and symmetries are cached between batches.
const KEPT_MOLECULES: usize = 4_096;

/// Judges texts in memory, against references that are given once.
///
/// ```
/// use drift_core::job::Job;
/// use drift_data::audit::{Judge, JudgePlan};
///
/// let mut judge = Judge::new(JudgePlan::default())?;
/// judge.add_texts("CCO", &["[C]<-1.2000,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1700,-0.3000,0.0000>"])?;
/// let texts = [
///     "[CONFORMER][C]<-1.2500,-0.2000,0.0000>[C]<0.0000,0.5500,0.0000>[O]<1.1500,-0.3500,0.0000>[/CONFORMER]",
///     "[CONFORMER][C]<1.0000,2.0000",
/// ];
/// let scores = judge.score(&["CCO", "CCO"], &texts, &Job::default())?;
/// assert!(scores.conformers[0].verdict.valid && scores.conformers[0].rmsd[0] < 0.1);
/// assert_eq!(scores.conformers[1].verdict.why, "no end: no [/CONFORMER]");
/// assert_eq!(scores.groups[0].coverage[0].unwrap().cov_recall, 1.0);
/// # Ok::<(), drift_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Judge {
    plan: JudgePlan,
    /// The references, by skeleton of the SMILES.
    references: BTreeMap<Box<str>, Arc<Vec<Conformation>>>,
    /// Cached molecules, by SMILES as spelled in batches.
    molecules: Mutex<HashMap<Box<str>, Arc<JudgedMolecule>>>,
}

impl Judge {
    /// Returns a judge without references: texts are judged, and compared only with each other.
    ///
    /// # Errors
    /// If there is no threshold, one is not a positive number, the bound of duplicates is negative, a weight is not finite, or a
    /// measure of ensembles cannot be computed.
    pub fn new(mut plan: JudgePlan) -> Result<Self> {
        plan.check()?;
        plan.ensembles = plan.ensembles.checked()?;
        Ok(Judge { plan, references: BTreeMap::new(), molecules: Mutex::default() })
    }

    /// Returns the settings for judging.
    pub fn plan(&self) -> &JudgePlan {
        &self.plan
    }

    /// Returns the molecules with references, by skeleton, with their conformers.
    pub fn references(&self) -> impl Iterator<Item = (&str, &[Conformation])> {
        self.references.iter().map(|(skeleton, conformers)| (&**skeleton, conformers.as_slice()))
    }

    /// Adds references of a molecule as enriched text, with or without tags. If a text spells the molecule differently, its atoms
    /// are reordered to match `smiles`.
    ///
    /// # Errors
    /// If `smiles` is not a SMILES, or a text is malformed in this encoding or of another molecule.
    pub fn add_texts(&mut self, smiles: &str, texts: &[&str]) -> Result<()> {
        let key = skeleton_of(smiles)?;
        let mut conformers = Vec::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            let place = || reference_place(smiles, at);
            if !self.plan.encoding.has_coordinates() {
                let problem = format!("the numbers of {} are codes, not coordinates", self.plan.encoding);
                return Err(Error::input(place(), problem, "give arrays of coordinates"));
            }
            for piece in conformers_in(text) {
                let read = parse(split(&piece).answer, Reading::new(self.plan.encoding)).map_err(|e| {
                    let name = self.plan.encoding.name();
                    Error::input(place(), e, format!("is the text written as {name} says, and whole?"))
                })?;
                let points = in_angstrom(&read.coordinates, self.plan.encoding);
                conformers.push(reordered(points, &read.skeleton, &key, self.plan.max_atoms).ok_or_else(
                    || {
                        let found = shortened_end(&skeleton::smiles(&read.skeleton), 100);
                        Error::input(
                            place(),
                            format!("is another molecule: {found}"),
                            "give references of this molecule",
                        )
                    },
                )?);
            }
        }
        self.put(key, conformers);
        Ok(())
    }

    /// Adds references of a molecule as coordinates `[conformers][heavy atoms]` in Å. `written` is the SMILES whose atom order they
    /// use, if that is not `smiles`.
    ///
    /// # Errors
    /// If `smiles` or `written` is not a SMILES, `written` is another molecule, the number of atoms differs, or a coordinate is larger than
    /// [`FARTHEST`] or no number.
    pub fn add_conformers(
        &mut self,
        smiles: &str,
        written: Option<&str>,
        conformers: Vec<Conformation>,
    ) -> Result<()> {
        let key = skeleton_of(smiles)?;
        let own = written.map(skeleton_of).transpose()?.unwrap_or_else(|| key.clone());
        let atoms = skeleton::atoms(&own).count();
        let mut ordered = Vec::with_capacity(conformers.len());
        for (at, points) in conformers.into_iter().enumerate() {
            if points.len() != atoms {
                let problem = format!("has {} atoms, and the SMILES writes {atoms}", points.len());
                let remedy = "give the atoms that the SMILES writes, in its order, without other hydrogens";
                return Err(Error::input(reference_place(smiles, at), problem, remedy));
            }
            let is_far = |point: &[f64; 3]| point.iter().any(|x| x.is_nan() || x.abs() > FARTHEST);
            if let Some(atom) = points.iter().position(is_far) {
                let problem = format!("atom {atom} has a coordinate that is no number up to {FARTHEST} Å");
                return Err(Error::input(reference_place(smiles, at), problem, "leave this conformer out"));
            }
            ordered.push(reordered(points, &own, &key, self.plan.max_atoms).ok_or_else(|| {
                let found = shortened_end(written.unwrap_or_default(), 100);
                let problem = format!("is another molecule: {found}");
                Error::input(reference_place(smiles, at), problem, "give references of this molecule")
            })?);
        }
        self.put(key, ordered);
        Ok(())
    }

    /// Adds all conformers of a corpus whose atoms are in the order of a SMILES. `wanted` restricts them to some molecules. They
    /// are kept in memory, at 24 bytes per atom.
    ///
    /// # Errors
    /// If the corpus cannot be read, or contains no such conformer.
    pub fn add_corpus(
        &mut self,
        corpus: &dyn Conformers,
        wanted: Option<&[&str]>,
        job: &Job,
    ) -> Result<ReadSummary> {
        let wanted =
            wanted.map(|smiles| smiles.iter().map(|smiles| skeleton_of(smiles)).collect::<Result<Vec<_>>>());
        let wanted = wanted.transpose()?.map(|all| all.into_iter().collect());
        let (found, summary) = conformers_by_skeleton(corpus, wanted.as_ref(), job)?;
        if found.is_empty() {
            let problem = match wanted {
                Some(_) => "contain none of these molecules",
                None => "contain no conformer with its atoms in the order of a SMILES",
            };
            return Err(Error::parameter(
                parameter::REFERENCES,
                problem,
                "give enriched text, or SMILES by name",
            ));
        }
        found.into_iter().for_each(|(skeleton, conformers)| self.put(skeleton, conformers));
        Ok(summary)
    }

    /// Returns the SMILES of molecules that have references and are none of `smiles`, the prompts of a batch or of several.
    ///
    /// # Errors
    /// If one of `smiles` is not a SMILES.
    pub fn without_texts(&self, smiles: &[&str]) -> Result<Vec<String>> {
        let asked: BTreeSet<Box<str>> = smiles.iter().map(|one| skeleton_of(one)).collect::<Result<_>>()?;
        let without = self.references.keys().filter(|skeleton| !asked.contains(*skeleton));
        Ok(without.map(|skeleton| skeleton::smiles(skeleton)).collect())
    }

    fn put(&mut self, key: Box<str>, conformers: Vec<Conformation>) {
        // Cached molecules contain their references, which are now incomplete.
        self.molecules.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        Arc::make_mut(self.references.entry(key).or_default()).extend(conformers);
    }

    /// Judges texts; `smiles[i]` is the prompt of `texts[i]`. It uses all cores, and the result does not depend on their number.
    ///
    /// # Errors
    /// If the numbers of SMILES and texts differ, an entry of `smiles` is not a SMILES, the reward needs references and a molecule
    /// has none, or the job was cancelled.
    pub fn score(&self, smiles: &[&str], texts: &[&str], job: &Job) -> Result<BatchScores> {
        if smiles.len() != texts.len() {
            let problem = format!("{} SMILES and {} texts", smiles.len(), texts.len());
            return Err(Error::input("the batch", problem, "give one SMILES a text"));
        }
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut molecules = Vec::new();
        let mut groups = Vec::with_capacity(smiles.len());
        for smiles in smiles {
            let next = molecules.len();
            let group = *places.entry(smiles).or_insert(next);
            if group == next {
                molecules.push(self.molecule(smiles)?);
            }
            groups.push(group);
        }
        let bare = molecules.iter().find(|molecule| molecule.conformers.is_empty());
        if let Some((part, molecule)) = self.plan.reward.needing_references().zip(bare) {
            let problem =
                format!("the part `{}` of the reward needs references, and there are none", part.name());
            let remedy = "give references under exactly this SMILES, or leave the part out";
            return Err(Error::input(&molecule.smiles, problem, remedy));
        }
        score(&self.plan, &molecules, &groups, texts, job)
    }

    /// Returns the data for judging the texts of a SMILES, built once.
    fn molecule(&self, smiles: &str) -> Result<Arc<JudgedMolecule>> {
        // The map is intact even if another thread panicked while holding the lock.
        let mut known = self.molecules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(molecule) = known.get(smiles) {
            return Ok(molecule.clone());
        }
        let skeleton = skeleton_of(smiles)?;
        let conformers = self.references.get(&skeleton).cloned().unwrap_or_default();
        let molecule = Arc::new(JudgedMolecule::new(smiles, skeleton, conformers));
        if known.len() >= KEPT_MOLECULES {
            known.clear();
        }
        known.insert(smiles.into(), molecule.clone());
        Ok(molecule)
    }
}

pub(super) fn skeleton_of(smiles: &str) -> Result<Box<str>> {
    let skeleton = skeleton::from_smiles(smiles);
    let skeleton = skeleton.map_err(|e| Error::input("the judge", e, "give the SMILES of the prompt"))?;
    Ok(skeleton.into())
}

fn reference_place(smiles: &str, at: usize) -> String {
    format!("references of {}, {at}", shortened_end(smiles, 100))
}
