//! Reads the corpus that is held in memory.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::list::LineRanks;
use super::other::{OtherCorpus, OtherPlace, Spelling};
use super::record::{RowCells, text_fingerprint};
use super::spelling::{Fingerprint, MoleculeIdentity, fingerprint, identified};
use crate::corpus::{Batch, Conformers};
use drift_core::chem::Isotopes;
use drift_core::{Error, Job, Result};

/// Reads a corpus. `bound` is the largest RMSD of equal geometries, in Å.
///
/// # Errors
/// As [`Conformers::read`]; also if no molecule can be compared, or there are more than 2³² conformers.
pub(crate) fn read_other(
    source: &dyn Conformers,
    bound: f64,
    isotopes: Isotopes,
    job: &Job,
) -> Result<OtherCorpus> {
    let mut reader = Reader::new(OtherCorpus::empty(source.reading().encoding, bound, isotopes));
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

/// Builds the corpus while it is read.
struct Reader {
    other: OtherCorpus,
    /// The indices of files, by name.
    files: HashMap<Arc<str>, u32>,
    /// By skeleton, how it maps to its molecule; `None` if it cannot be compared.
    spellings: HashMap<Fingerprint, Option<Spelling>>,
    /// The current file, and the number of its conformers read so far.
    number: (Arc<str>, u64),
    ranks: LineRanks,
}

impl Reader {
    fn new(other: OtherCorpus) -> Self {
        Reader {
            other,
            files: HashMap::new(),
            spellings: HashMap::new(),
            number: ("".into(), 0),
            ranks: LineRanks::default(),
        }
    }

    fn add(&mut self, batch: &Batch) -> Result<()> {
        if self.number.0 != batch.file {
            (self.number, self.ranks) = ((batch.file.clone(), 0), LineRanks::default());
        }
        let file = self.file(&batch.file);
        let prints: Vec<Fingerprint> = batch.conformers.par_iter().map(fingerprint).collect();
        self.add_spellings(batch, &prints);
        let texts: Vec<Fingerprint> = batch
            .conformers
            .par_iter()
            .zip(&prints)
            .map(|(conformer, print)| text_fingerprint(*print, conformer))
            .collect();
        for (at, (conformer, print)) in batch.conformers.iter().zip(&prints).enumerate() {
            self.number.1 += 1;
            let rank = self.ranks.next(batch.lines.get(at).copied());
            let cells = RowCells::new(batch, at);
            let subset = self.other.subsets.number(cells.test_subset);
            self.other.keys.add(texts[at], cells.inchikey, 1 << subset);
            let Some(spelling) = &self.spellings[print] else {
                self.other.summary.not_compared += 1;
                continue;
            };
            let points = spelling.order.iter().map(|block| conformer.coordinates[*block as usize]);
            let line = batch.lines.get(at).map_or(0, |line| u32::try_from(*line).unwrap_or(u32::MAX));
            let number = u32::try_from(self.number.1).unwrap_or(u32::MAX);
            self.other.add(spelling, points.collect(), OtherPlace { file, line, rank, number, subset });
        }
        if self.other.summary.conformers > u64::from(u32::MAX) {
            let problem = "contains more than 4,294,967,295 conformers";
            return Err(Error::input(&*batch.file, problem, "give the smaller corpus as the other one"));
        }
        Ok(())
    }

    /// Identifies the molecules of new skeletons.
    fn add_spellings(&mut self, batch: &Batch, prints: &[Fingerprint]) {
        let mut new: Vec<usize> =
            (0..prints.len()).filter(|at| !self.spellings.contains_key(&prints[*at])).collect();
        new.sort_by_key(|at| (prints[*at], *at));
        new.dedup_by_key(|at| prints[*at]);
        // Molecules are numbered in the order of their first conformers.
        new.sort_unstable();
        let found: Vec<Option<MoleculeIdentity>> =
            new.par_iter().map(|at| identified(&batch.conformers[*at], self.other.isotopes)).collect();
        for (at, found) in new.iter().zip(found) {
            let spelling = found.and_then(|it| self.other.spelling(&batch.conformers[*at].skeleton, it));
            self.spellings.insert(prints[*at], spelling);
        }
    }

    fn file(&mut self, name: &Arc<str>) -> u32 {
        let (files, next) = (&mut self.other.files, self.files.len() as u32);
        *self.files.entry(name.clone()).or_insert_with(|| {
            files.push(name.clone());
            next
        })
    }
}
