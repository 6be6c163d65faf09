//! Compares the streamed corpus, batch by batch, with the corpus in memory.

use std::sync::Arc;

use rayon::prelude::*;

use super::finder::Finder;
use super::found::FoundInOther;
use super::list::{ListedPair, Place};
use super::other::{Other, OtherConformer, OtherMolecule, canonical};
use super::spelling::{Known, Shared};
use crate::audit::spread::spread;
use crate::corpus::{Batch, Conformer};
use drift_core::error::{Error, Result};
use drift_core::text::skeleton::smiles;

/// The number of conformers in one parallel task.
const CHUNK: usize = 256;

/// Compares batches with a corpus in memory.
pub(super) struct Comparison<'o> {
    other: &'o Other,
    finder: Finder,
    /// By number, the files of the other corpus under canonical paths.
    others_files: Vec<Arc<str>>,
    file: FileAt,
    /// Whether lines of the list are produced.
    is_listed: bool,
    /// The results so far.
    pub found: FoundInOther,
}

/// The file that is currently read.
struct FileAt {
    name: Arc<str>,
    canonical: Arc<str>,
    /// The number of its conformers before this batch.
    before: u64,
}

/// The result for one conformer.
#[derive(Default)]
struct RowFound {
    pairs: Vec<FoundPair>,
    upper_bounds: u64,
    has_geometry: bool,
}

struct FoundPair {
    conformer: usize,
    rmsd: f64,
    is_mirrored: bool,
}

impl<'o> Comparison<'o> {
    pub(super) fn new(other: &'o Other, is_listed: bool) -> Self {
        let others_files = other.files.iter().map(|name| canonical(name)).collect();
        let file = FileAt { name: "".into(), canonical: "".into(), before: 0 };
        Comparison {
            other,
            finder: Finder::default(),
            others_files,
            file,
            is_listed,
            found: FoundInOther::default(),
        }
    }

    /// Compares a batch and returns the lines of the list.
    pub(super) fn add(&mut self, batch: &Batch) -> Result<Vec<u8>> {
        if self.file.name != batch.file {
            let name = batch.file.clone();
            self.file = FileAt { canonical: canonical(&name), name, before: 0 };
        }
        let known = self.finder.find(self.other, &batch.conformers);
        let parts: Vec<Result<(FoundInOther, Vec<u8>)>> = (0..batch.conformers.len())
            .collect::<Vec<_>>()
            .par_chunks(CHUNK)
            .map(|chunk| {
                let (mut found, mut lines) = (FoundInOther::default(), Vec::new());
                for &at in chunk {
                    self.row(batch, at, &known[at], &mut found, &mut lines)?;
                }
                Ok((found, lines))
            })
            .collect();
        let mut all = Vec::new();
        // In the order of the batch, so that the list does not depend on threads.
        for part in parts {
            let (found, lines) = part?;
            self.found.merge(&found);
            all.extend(lines);
        }
        self.file.before += batch.conformers.len() as u64;
        Ok(all)
    }

    fn row(
        &self,
        batch: &Batch,
        at: usize,
        known: &Known,
        found: &mut FoundInOther,
        lines: &mut Vec<u8>,
    ) -> Result<()> {
        let counts = &mut found.counts;
        let shared = match known {
            Known::Absent => return Ok(()),
            Known::NotCompared => {
                counts.rows_not_compared += 1;
                return Ok(());
            }
            Known::Shared(shared) => shared,
        };
        let place = Place {
            file: &self.file.name,
            line: batch.lines.get(at).copied(),
            conformer: self.file.before + at as u64 + 1,
        };
        let conformer = &batch.conformers[at];
        let row = self.compare(conformer, shared, &place);
        let mirrored = row.pairs.iter().filter(|pair| pair.is_mirrored).count() as u64;
        // A conformer may have both kinds of pair. It counts once, and as a duplicate rather than a mirror image.
        let same = row.pairs.len() as u64 - mirrored;
        counts.rows_of_shared_molecules += 1;
        counts.rows_of_shared_isomers += u64::from(shared.isomer.is_some());
        counts.rows_with_duplicate += u64::from(same > 0);
        counts.rows_with_mirror_image += u64::from(same == 0 && mirrored > 0);
        counts.rows_without_geometry += u64::from(!row.has_geometry);
        counts.pairs += same;
        counts.mirror_pairs += mirrored;
        counts.rmsd_upper_bounds += row.upper_bounds;
        found.molecules.insert(shared.molecule as u32);
        found.isomers.extend(shared.isomer.map(|isomer| (shared.molecule as u32, isomer)));
        let first = self.other.first[shared.molecule];
        let met = row.pairs.iter().filter(|pair| !pair.is_mirrored);
        found.conformers.extend(met.map(|pair| first + pair.conformer as u32));
        if self.is_listed { self.list(conformer, shared, &place, &row, lines) } else { Ok(()) }
    }

    /// Compares a conformer with those of the other corpus that could have the same geometry.
    fn compare(&self, conformer: &Conformer, shared: &Shared, place: &Place<'_>) -> RowFound {
        let (other, molecule) = (self.other, &self.other.molecules[shared.molecule]);
        let (Some(order), Some(topology)) = (&shared.order, molecule.topology(other.isotopes)) else {
            return RowFound::default();
        };
        let at = |block: &u32| other.encoding.angstrom(&conformer.coordinates[*block as usize]);
        let own: Vec<[f64; 3]> = order.iter().filter_map(at).collect();
        let mut row = RowFound { has_geometry: true, ..RowFound::default() };
        let mut mirror: Option<Vec<[f64; 3]>> = None;
        // A mirror image has the same spread as its original, so this one search finds candidates of both kinds.
        for near in molecule.near(spread(&own), other.bound) {
            // If a corpus is compared with itself, each record would be its own duplicate.
            if self.is_itself(&molecule.conformers[near], place) {
                continue;
            }
            let theirs = molecule.points(near, other.encoding);
            let Some(least) = topology.least_rmsd(&own, &theirs) else { continue };
            if least.rmsd <= other.bound {
                row.pairs.push(FoundPair { conformer: near, rmsd: least.rmsd, is_mirrored: false });
                continue;
            }
            // The search for the least RMSD was cut off, so this pair may still lie within the bound.
            row.upper_bounds += u64::from(!least.is_exact);
            // Most conformers have no candidate and need no mirror image. Inverting one axis mirrors all atoms.
            let mirrored = mirror.get_or_insert_with(|| own.iter().map(|[x, y, z]| [-x, *y, *z]).collect());
            let rmsd = topology.rmsd(mirrored, &theirs).filter(|rmsd| *rmsd <= other.bound);
            row.pairs.extend(rmsd.map(|rmsd| FoundPair { conformer: near, rmsd, is_mirrored: true }));
        }
        row
    }

    /// Whether a conformer of the other corpus is the same record as the one it is compared with.
    fn is_itself(&self, conformer: &OtherConformer, place: &Place<'_>) -> bool {
        u64::from(conformer.number) == place.conformer
            && self.others_files[conformer.file as usize] == self.file.canonical
    }

    fn list(
        &self,
        conformer: &Conformer,
        shared: &Shared,
        place: &Place<'_>,
        row: &RowFound,
        lines: &mut Vec<u8>,
    ) -> Result<()> {
        let OtherMolecule { isomers, conformers, .. } = &self.other.molecules[shared.molecule];
        let names: Vec<String> = isomers.iter().map(|isomer| smiles(&isomer.skeleton)).collect();
        let isomer = |at: u32| &*names[at as usize];
        let molecule = smiles(&conformer.skeleton);
        let line = ListedPair {
            file: place.file,
            line: place.line,
            conformer: place.conformer,
            molecule: &molecule,
            same_stereo: shared.isomer.is_some(),
            other_molecule: isomer(shared.isomer.unwrap_or(0)),
            other_file: None,
            other_line: None,
            other_conformer: None,
            rmsd_angstrom: None,
            mirror_image: false,
        };
        // A conformer without a pair gets a line too, because a shared molecule is worth reporting by itself.
        let mut put = |line: &ListedPair<'_>| {
            serde_json::to_writer(&mut *lines, line).map_err(|e| Error::internal("a line of the list", e))?;
            lines.push(b'\n');
            Ok(())
        };
        if row.pairs.is_empty() {
            return put(&line);
        }
        // In the order of the other corpus.
        let mut pairs: Vec<(&OtherConformer, &FoundPair)> =
            row.pairs.iter().map(|pair| (&conformers[pair.conformer], pair)).collect();
        pairs.sort_unstable_by_key(|(conformer, _)| conformer.at);
        for (conformer, pair) in pairs {
            let theirs = self.other.place(conformer);
            put(&ListedPair {
                same_stereo: shared.isomer == Some(conformer.isomer),
                other_molecule: isomer(conformer.isomer),
                other_file: Some(theirs.file),
                other_line: theirs.line,
                other_conformer: Some(theirs.conformer),
                rmsd_angstrom: Some(pair.rmsd),
                mirror_image: pair.is_mirrored,
                ..line
            })?;
        }
        Ok(())
    }
}
