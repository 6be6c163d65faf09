//! The corpus that is held in memory.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::keys::Keys;
use super::kind::SubsetBits;
use super::list::Place;
use super::spelling::{MoleculeIdentity, SkeletonMapping, SpellingMatch};
use super::subsets::Subsets;
use crate::audit::geometry::Topology;
use crate::audit::spread::spread;
use crate::corpus::SkippedRecord;
use drift_core::chem::{IdenticalAtoms, Isotopes, MolecularIdentity};
use drift_core::encoding::Fixed;
use drift_core::job::{InputHash, Unit};
use drift_core::{Encoding, Job, Result};

/// The least bound on the RMSD, in Å: equal positions have one of some 1e-7 Å, by rounding.
const LEAST_BOUND_ANGSTROM: f64 = 1e-6;

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
    /// The number of different texts.
    pub texts: u64,
    /// The number of different InChIKeys in the column `inchikey`.
    pub inchikeys: u64,
    /// The number of different Murcko scaffolds.
    pub scaffolds: u64,
    /// The values of the column `test_subset`; an empty one stands for rows without a value.
    pub test_subsets: Vec<String>,
    /// Whether there are more than 63 of them, so that they are not told apart.
    pub has_too_many_subsets: bool,
    /// The number of conformers that have the same geometry as an earlier one.
    pub duplicate_conformers: u64,
    /// The number of conformers that cannot be found: without a SMILES, or too large.
    pub not_compared: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
    /// The first of these records.
    pub skipped_records: Vec<SkippedRecord>,
}

/// A corpus in memory. It takes 36 bytes for each conformer, up to 80 for its text and 150 for its InChIKey, 12 for each of its atoms, and
/// about 5 KB for each molecule.
#[derive(Debug)]
pub struct OtherCorpus {
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
    pub(super) keys: Keys,
    pub(super) subsets: Subsets,
    /// The largest RMSD of equal geometries, in Å.
    pub(super) bound: f64,
}

/// A molecule, with its conformers sorted by the first length of their spread.
#[derive(Debug)]
pub(super) struct OtherMolecule {
    /// Its stereoisomers. The first one defines the order of atoms.
    pub isomers: Vec<OtherIsomer>,
    /// The test subsets that have it.
    pub subsets: SubsetBits,
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
    /// The test subsets that have it.
    pub subsets: SubsetBits,
}

/// How a skeleton maps to its molecule.
#[derive(Debug, Clone)]
pub(super) struct Spelling {
    molecule: u32,
    isomer: u32,
    /// For each atom of the molecule, the block of the skeleton.
    pub order: Arc<[u32]>,
    scaffold: Option<u32>,
}

/// Where a conformer was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct OtherPlace {
    /// The index of its file.
    pub file: u32,
    /// Its line, from 1; 0 if records are not lines, which avoids an option in each conformer.
    pub line: u32,
    /// The number of earlier conformers of its line.
    pub rank: u16,
    /// Its number in the file, from 1.
    pub number: u32,
    /// The number of its test subset.
    pub subset: u8,
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
    /// Its line, from 1; 0 if records are not lines.
    pub line: u32,
    /// The number of earlier conformers of its line.
    pub rank: u16,
    /// Its number in the file, from 1.
    pub number: u32,
    /// The number of its test subset.
    pub subset: u8,
}

impl OtherMolecule {
    fn atoms(&self) -> usize {
        self.isomers[0].identity.kept().len()
    }

    /// Returns the positions of a conformer's atoms, in Å.
    pub(super) fn points(&self, conformer: usize, encoding: Encoding) -> Vec<[f64; 3]> {
        let (n, at) = (self.atoms(), self.conformers[conformer].at as usize);
        self.points[at * n..(at + 1) * n].iter().filter_map(|values| encoding.angstrom(values)).collect()
    }

    /// Returns the topology that compares its conformers. Atoms are in the order of the compared atoms of the first isomer.
    pub(super) fn topology(&self, isotopes: Isotopes) -> Option<&Topology> {
        let first = &self.isomers[0];
        self.topology.get_or_init(|| Topology::without_hydrogens(&first.skeleton, isotopes).ok()).as_ref()
    }

    /// Returns the conformers whose spread is within a distance of `lengths`, in Å.
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

impl OtherCorpus {
    /// Returns a corpus without conformers.
    pub(super) fn empty(encoding: Encoding, bound: f64, isotopes: Isotopes) -> Self {
        OtherCorpus {
            summary: OtherSummary::default(),
            molecules: Vec::new(),
            by_key: HashMap::new(),
            first: Vec::new(),
            files: Vec::new(),
            encoding,
            isotopes,
            keys: Keys::default(),
            subsets: Subsets::default(),
            bound: bound.max(LEAST_BOUND_ANGSTROM),
        }
    }

    /// Adds a conformer of a molecule. `points` has the values of its compared atoms, in the molecule's order.
    pub(super) fn add(&mut self, spelling: &Spelling, points: Vec<[Fixed; 3]>, place: OtherPlace) {
        let angstrom: Vec<[f64; 3]> =
            points.iter().filter_map(|values| self.encoding.angstrom(values)).collect();
        let bit = 1 << place.subset;
        let molecule = &mut self.molecules[spelling.molecule as usize];
        molecule.conformers.push(OtherConformer {
            spread: spread(&angstrom).map(|length| length as f32),
            at: molecule.conformers.len() as u32,
            isomer: spelling.isomer,
            file: place.file,
            line: place.line,
            rank: place.rank,
            number: place.number,
            subset: place.subset,
        });
        molecule.points.extend(points);
        molecule.subsets |= bit;
        molecule.isomers[spelling.isomer as usize].subsets |= bit;
        if let Some(scaffold) = spelling.scaffold {
            self.keys.scaffolds.add_subset(scaffold, bit);
        }
        self.summary.conformers += 1;
    }

    /// Returns the molecule of a skeleton, which is added if it is new; `None` if too much symmetry prevents mapping it to the known
    /// molecule.
    pub(super) fn spelling(&mut self, skeleton: &Arc<str>, found: MoleculeIdentity) -> Option<Spelling> {
        let known = self.known(Some(&found));
        let MoleculeIdentity { identity, scaffold } = found;
        let scaffold = scaffold.map(|scaffold| self.keys.scaffolds.find_or_add(scaffold));
        let isomer = |identity| OtherIsomer { skeleton: skeleton.clone(), identity, subsets: 0 };
        match known {
            SpellingMatch::Shared(shared) => {
                let order: Arc<[u32]> = shared.order.as_deref()?.into();
                let isomers = &mut self.molecules[shared.molecule].isomers;
                let at = shared.isomer.unwrap_or(isomers.len() as u32);
                if at as usize == isomers.len() {
                    isomers.push(isomer(identity));
                }
                Some(Spelling { molecule: shared.molecule as u32, isomer: at, order, scaffold })
            }
            // An identity was given, so the result is never `NotCompared`.
            SpellingMatch::Absent(_) | SpellingMatch::NotCompared => {
                let molecule = self.molecules.len() as u32;
                let order = identity.kept().into();
                self.by_key.entry(identity.key()).or_default().push(molecule);
                self.molecules.push(OtherMolecule {
                    isomers: vec![isomer(identity)],
                    subsets: 0,
                    conformers: Vec::new(),
                    points: Vec::new(),
                    topology: OnceLock::new(),
                });
                Some(Spelling { molecule, isomer: 0, order, scaffold })
            }
        }
    }

    /// Returns the result for a skeleton whose molecule was identified.
    pub(super) fn known(&self, found: Option<&MoleculeIdentity>) -> SpellingMatch {
        let Some(MoleculeIdentity { identity, scaffold }) = found else { return SpellingMatch::NotCompared };
        let scaffold = scaffold.as_ref().and_then(|scaffold| self.keys.scaffolds.find(scaffold));
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
            return SpellingMatch::Shared(Arc::new(SkeletonMapping {
                molecule: *molecule as usize,
                isomer,
                order,
                scaffold,
            }));
        }
        SpellingMatch::Absent(scaffold)
    }

    /// Returns the position of a conformer in its file.
    pub(super) fn place(&self, conformer: &OtherConformer) -> Place<'_> {
        let OtherConformer { file, line, number, .. } = *conformer;
        let line = (line > 0).then_some(u64::from(line));
        Place { file: &self.files[file as usize], line, conformer: u64::from(number) }
    }

    /// Sorts the conformers, and counts duplicate geometries.
    pub(super) fn sort(&mut self, job: &Job) -> Result<()> {
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
        self.summary.texts = self.keys.texts.len() as u64;
        self.summary.inchikeys = self.keys.inchikeys.len() as u64;
        self.summary.scaffolds = self.keys.scaffolds.len() as u64;
        self.summary.test_subsets = self.subsets.names();
        self.summary.has_too_many_subsets = self.subsets.is_overfull();
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
    /// Returns the number of conformers with the same geometry as an earlier one.
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

/// Returns the canonical path of a file, which does not depend on how the user wrote it; of a member of an archive, that of the
/// archive, followed by the member.
pub(super) fn canonical(name: &str) -> Arc<str> {
    let file = |name: &str| Some(std::fs::canonicalize(name).ok()?.to_string_lossy().into_owned());
    let member = |(at, _): (usize, &str)| Some(file(&name[..at])? + &name[at..]);
    file(name).or_else(|| name.match_indices(':').find_map(member)).map_or_else(|| name.into(), Arc::from)
}
