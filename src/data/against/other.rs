//! The corpus that is held in memory.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::list::Place;
use super::spelling::{Fingerprint, Known, Shared, fingerprint, identity};
use crate::audit::geometry::Topology;
use crate::audit::spread::spread;
use crate::corpus::{Batch, Conformers, Skipped};
use drift_core::chem::{IdenticalAtoms, Isotopes, MolecularIdentity};
use drift_core::encoding::{Encoding, Fixed};
use drift_core::error::{Error, Result};
use drift_core::job::{InputHash, Job, Unit};

/// The largest error of comparing lengths in single precision, in Å.
const SLACK_ANGSTROM: f64 = 1e-5;

/// A summary of the corpus in memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OtherSummary {
    /// Its files.
    pub inputs: Vec<InputHash>,
    /// The number of conformers that can be found.
    pub conformers: u64,
    /// The number of molecules, ignoring stereo.
    pub molecules: u64,
    /// The number of molecules, distinguished by stereo.
    pub isomers: u64,
    /// The number of conformers that have the same geometry as an earlier one.
    pub duplicate_conformers: u64,
    /// The number of conformers that cannot be found: without a SMILES, or too large.
    pub not_compared: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
    /// The first of these records.
    pub skipped_records: Vec<Skipped>,
}

/// A corpus in memory. It takes 32 bytes for each conformer, 12 for each of its atoms, and about 5 KB for each molecule.
#[derive(Debug)]
pub struct Other {
    /// Its summary.
    pub summary: OtherSummary,
    pub(super) molecules: Vec<OtherMolecule>,
    by_key: HashMap<u64, Vec<u32>>,
    /// By molecule, the number of conformers of all molecules before it.
    pub(super) first: Vec<u32>,
    pub(super) files: Vec<Arc<str>>,
    pub(super) encoding: Encoding,
    /// Whether isotope labels tell molecules and their atoms apart.
    pub(super) isotopes: Isotopes,
    /// The largest RMSD of equal geometries, in Å.
    pub(super) bound: f64,
}

/// A molecule, with its conformers sorted by the first length of their spread.
#[derive(Debug)]
pub(super) struct OtherMolecule {
    /// Its stereoisomers. The first one defines the order of atoms.
    pub isomers: Vec<OtherIsomer>,
    pub conformers: Vec<OtherConformer>,
    /// The values of each conformer's atoms, with conformers in the order of their files.
    points: Vec<[Fixed; 3]>,
    /// Built on first use.
    topology: OnceLock<Option<Topology>>,
}

#[derive(Debug)]
pub(super) struct OtherIsomer {
    pub skeleton: Arc<str>,
    pub identity: MolecularIdentity,
}

/// A conformer.
#[derive(Debug, Clone, Copy)]
pub(super) struct OtherConformer {
    spread: [f32; 3],
    /// The index of its points, counted in conformers: its place among the molecule's conformers in the order of the files.
    pub at: u32,
    pub isomer: u32,
    /// The index of its file.
    pub file: u32,
    line: u32,
    /// Its number in the file, from 1.
    pub number: u32,
}

impl OtherMolecule {
    fn atoms(&self) -> usize {
        self.isomers[0].identity.kept().len()
    }

    /// The positions of a conformer's atoms, in Å.
    pub(super) fn points(&self, conformer: usize, encoding: Encoding) -> Vec<[f64; 3]> {
        let (n, at) = (self.atoms(), self.conformers[conformer].at as usize);
        self.points[at * n..(at + 1) * n].iter().filter_map(|values| encoding.angstrom(values)).collect()
    }

    /// The topology that compares its conformers. Atoms are in the order of the compared atoms of the first isomer.
    pub(super) fn topology(&self, isotopes: Isotopes) -> Option<&Topology> {
        let first = &self.isomers[0];
        self.topology.get_or_init(|| Topology::without_hydrogens(&first.skeleton, isotopes).ok()).as_ref()
    }

    /// The conformers whose spread is within a distance of `lengths`, in Å.
    pub(super) fn near(&self, lengths: [f64; 3], within: f64) -> impl Iterator<Item = usize> {
        // Rounding of the stored lengths must not lose a pair.
        let within = within + SLACK_ANGSTROM;
        let begin = self.conformers.partition_point(|c| f64::from(c.spread[0]) < lengths[0] - within);
        // Conformers are sorted by the first length, so the candidates are adjacent.
        let rest = self.conformers[begin..].iter().enumerate();
        rest.take_while(move |(_, c)| f64::from(c.spread[0]) <= lengths[0] + within)
            .filter(move |(_, c)| {
                let between = c.spread.iter().zip(lengths).map(|(a, b)| (f64::from(*a) - b).powi(2));
                between.sum::<f64>() <= within * within
            })
            .map(move |(at, _)| begin + at)
    }
}

impl Other {
    /// Reads a corpus. `bound` is the largest RMSD of equal geometries, in Å.
    ///
    /// # Errors
    /// As [`Conformers::read`]; also if no molecule can be compared, or there are more than 2³² conformers.
    pub fn read(source: &dyn Conformers, bound: f64, isotopes: Isotopes, job: &Job) -> Result<Self> {
        let encoding = source.reading().encoding;
        let mut reader = Reader::new(encoding, bound, isotopes);
        let read = source.read(job, &mut |batch| reader.add(&batch))?;
        let mut other = reader.other;
        let summary = &mut other.summary;
        (summary.inputs, summary.skipped) = (read.inputs, read.skipped);
        summary.skipped_records = read.skipped_records;
        if summary.conformers == 0 {
            let problem = "contains no conformer with a SMILES, so its molecules cannot be identified";
            let remedy = "give texts, SDF with a SMILES, or the names of its molecules";
            let name = summary.inputs.first().map_or("the other corpus", |input| &*input.name);
            return Err(Error::input(name, problem, remedy));
        }
        other.sort(job)?;
        Ok(other)
    }

    /// The result for a skeleton whose molecule has this identity.
    pub(super) fn known(&self, identity: Option<&MolecularIdentity>) -> Known {
        let Some(identity) = identity else { return Known::NotCompared };
        // Different molecules may have the same key.
        for molecule in self.by_key.get(&identity.key()).into_iter().flatten() {
            let isomers = &self.molecules[*molecule as usize].isomers;
            let order = match isomers[0].identity.atoms_in(identity) {
                IdenticalAtoms::None => continue,
                IdenticalAtoms::Order(order) => {
                    Some(order.iter().map(|at| identity.kept()[*at as usize]).collect())
                }
                IdenticalAtoms::Unknown => None,
            };
            let isomer = isomers.iter().position(|isomer| isomer.identity.is_isomer(identity));
            let isomer = isomer.map(|at| at as u32);
            return Known::Shared(Arc::new(Shared { molecule: *molecule as usize, isomer, order }));
        }
        Known::Absent
    }

    /// The position of a conformer in its file.
    pub(super) fn place(&self, conformer: &OtherConformer) -> Place<'_> {
        let OtherConformer { file, line, number, .. } = *conformer;
        let line = (line > 0).then_some(u64::from(line));
        Place { file: &self.files[file as usize], line, conformer: u64::from(number) }
    }

    /// Sorts the conformers, and counts duplicate geometries.
    fn sort(&mut self, job: &Job) -> Result<()> {
        job.observer().begin("sorting", None, Unit::Items);
        let (encoding, bound, isotopes) = (self.encoding, self.bound, self.isotopes);
        let duplicates = self.molecules.par_iter_mut().map(|molecule| {
            job.check()?;
            molecule.points.shrink_to_fit();
            molecule.conformers.shrink_to_fit();
            molecule.conformers.sort_by(|a, b| a.spread[0].total_cmp(&b.spread[0]).then(a.at.cmp(&b.at)));
            Ok(molecule.duplicates(encoding, bound, isotopes))
        });
        let duplicates: Result<u64> = duplicates.sum();
        job.observer().end();
        self.summary.duplicate_conformers = duplicates?;
        self.summary.molecules = self.molecules.len() as u64;
        self.summary.isomers = self.molecules.iter().map(|molecule| molecule.isomers.len() as u64).sum();
        let mut all = 0;
        for molecule in &self.molecules {
            self.first.push(all);
            all += molecule.conformers.len() as u32;
        }
        Ok(())
    }
}

impl OtherMolecule {
    /// The number of conformers with the same geometry as an earlier one.
    fn duplicates(&self, encoding: Encoding, bound: f64, isotopes: Isotopes) -> u64 {
        let Some(topology) = self.topology(isotopes).filter(|_| self.conformers.len() > 1) else { return 0 };
        let is_duplicate = |conformer: &usize| {
            let own = self.points(*conformer, encoding);
            self.near(spread(&own), bound).any(|other| {
                self.conformers[other].at < self.conformers[*conformer].at
                    && topology.rmsd(&own, &self.points(other, encoding)).is_some_and(|rmsd| rmsd <= bound)
            })
        };
        (0..self.conformers.len()).filter(is_duplicate).count() as u64
    }
}

/// Builds the corpus while it is read.
struct Reader {
    other: Other,
    /// The indices of files, by name.
    files: HashMap<Arc<str>, u32>,
    /// By skeleton, its molecule, its isomer, and for each atom of the molecule the block of the skeleton; `None` if it cannot be
    /// compared.
    spellings: HashMap<Fingerprint, Option<Spelling>>,
    /// The current file, and the number of its conformers read so far.
    number: (Arc<str>, u64),
}

#[derive(Clone)]
struct Spelling {
    molecule: u32,
    isomer: u32,
    order: Arc<[u32]>,
}

impl Reader {
    fn new(encoding: Encoding, bound: f64, isotopes: Isotopes) -> Self {
        let other = Other {
            summary: OtherSummary::default(),
            molecules: Vec::new(),
            by_key: HashMap::new(),
            first: Vec::new(),
            files: Vec::new(),
            encoding,
            isotopes,
            bound,
        };
        Reader { other, files: HashMap::new(), spellings: HashMap::new(), number: ("".into(), 0) }
    }

    fn add(&mut self, batch: &Batch) -> Result<()> {
        if self.number.0 != batch.file {
            self.number = (batch.file.clone(), 0);
        }
        let file = self.file(&batch.file);
        let prints: Vec<Fingerprint> = batch.conformers.par_iter().map(fingerprint).collect();
        let mut new: Vec<usize> =
            (0..prints.len()).filter(|at| !self.spellings.contains_key(&prints[*at])).collect();
        new.sort_by_key(|at| (prints[*at], *at));
        new.dedup_by_key(|at| prints[*at]);
        // Molecules are numbered in the order of their first conformers.
        new.sort_unstable();
        let identities: Vec<Option<MolecularIdentity>> =
            new.par_iter().map(|at| identity(&batch.conformers[*at], self.other.isotopes)).collect();
        for (at, identity) in new.iter().zip(identities) {
            let spelling = identity.and_then(|it| self.spelling(&batch.conformers[*at].skeleton, it));
            self.spellings.insert(prints[*at], spelling);
        }
        for (at, (conformer, print)) in batch.conformers.iter().zip(&prints).enumerate() {
            self.number.1 += 1;
            let Some(spelling) = self.spellings[print].clone() else {
                self.other.summary.not_compared += 1;
                continue;
            };
            let points = || spelling.order.iter().map(|block| conformer.coordinates[*block as usize]);
            let angstrom: Vec<[f64; 3]> =
                points().filter_map(|values| self.other.encoding.angstrom(&values)).collect();
            let molecule = &mut self.other.molecules[spelling.molecule as usize];
            molecule.conformers.push(OtherConformer {
                spread: spread(&angstrom).map(|length| length as f32),
                at: molecule.conformers.len() as u32,
                isomer: spelling.isomer,
                file,
                // Lines count from 1, so 0 stands for no line and avoids an option in each conformer.
                line: batch.lines.get(at).map_or(0, |line| u32::try_from(*line).unwrap_or(u32::MAX)),
                number: u32::try_from(self.number.1).unwrap_or(u32::MAX),
            });
            molecule.points.extend(points());
            self.other.summary.conformers += 1;
        }
        if self.other.summary.conformers > u64::from(u32::MAX) {
            let problem = "contains more than 4,294,967,295 conformers";
            return Err(Error::input(&*batch.file, problem, "give the smaller corpus as the other one"));
        }
        Ok(())
    }

    fn file(&mut self, name: &Arc<str>) -> u32 {
        let (files, next) = (&mut self.other.files, self.files.len() as u32);
        *self.files.entry(name.clone()).or_insert_with(|| {
            files.push(name.clone());
            next
        })
    }

    /// The molecule of a skeleton, which is added if it is new; `None` if too much symmetry prevents mapping it to the known
    /// molecule.
    fn spelling(&mut self, skeleton: &Arc<str>, identity: MolecularIdentity) -> Option<Spelling> {
        let isomer = |identity| OtherIsomer { skeleton: skeleton.clone(), identity };
        match self.other.known(Some(&identity)) {
            Known::Shared(shared) => {
                let order: Arc<[u32]> = shared.order.as_deref()?.into();
                let isomers = &mut self.other.molecules[shared.molecule].isomers;
                let at = shared.isomer.unwrap_or(isomers.len() as u32);
                if at as usize == isomers.len() {
                    isomers.push(isomer(identity));
                }
                Some(Spelling { molecule: shared.molecule as u32, isomer: at, order })
            }
            // An identity was given, so the result is never `NotCompared`.
            Known::Absent | Known::NotCompared => {
                let molecule = self.other.molecules.len() as u32;
                let order = identity.kept().into();
                self.other.by_key.entry(identity.key()).or_default().push(molecule);
                self.other.molecules.push(OtherMolecule {
                    isomers: vec![isomer(identity)],
                    conformers: Vec::new(),
                    points: Vec::new(),
                    topology: OnceLock::new(),
                });
                Some(Spelling { molecule, isomer: 0, order })
            }
        }
    }
}

/// The canonical path of a file, which does not depend on how the user wrote it.
pub(super) fn canonical(name: &str) -> Arc<str> {
    std::fs::canonicalize(Path::new(name)).map_or_else(|_| name.into(), |path| path.to_string_lossy().into())
}
