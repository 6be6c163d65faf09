//! Compares the streamed corpus, batch by batch, with the corpus in memory.

use std::sync::Arc;

use rayon::prelude::*;

use super::finder::Finder;
use super::found::FoundInOther;
use super::kind::{SharedKind, Shares};
use super::list::{LineRanks, ListedPair, Place};
use super::other::{OtherConformer, OtherCorpus, OtherMolecule, canonical};
use super::plan::AgainstPlan;
use super::record::{RowCells, text_fingerprint};
use super::spelling::{Fingerprint, SkeletonMapping, SpellingMatch, fingerprint};
use crate::audit::spread::spread;
use crate::corpus::{Batch, Conformer};
use drift_core::text::skeleton::smiles;
use drift_core::{Error, Result};

/// The number of conformers in one parallel task.
const CHUNK: usize = 256;

/// Compares batches with a corpus in memory.
pub(super) struct Comparison<'o> {
    other: &'o OtherCorpus,
    finder: Finder,
    /// By number, the files of the other corpus under canonical paths.
    others_files: Vec<Arc<str>>,
    file: FileAt,
    plan: &'o AgainstPlan,
    /// The results so far.
    pub found: FoundInOther,
}

/// The file that is currently read.
struct FileAt {
    name: Arc<str>,
    canonical: Arc<str>,
    /// Whether it is a file of the other corpus too, so that each of its records finds itself there.
    is_in_other: bool,
    /// The number of its conformers before this batch.
    before: u64,
    ranks: LineRanks,
}

/// What comes of a batch beside counts.
pub(super) struct BatchComparison {
    /// Lines of the list.
    pub lines: Vec<u8>,
    /// The rows that stay.
    pub kept: Vec<u8>,
}

/// A conformer of the streamed corpus.
struct Row<'b> {
    conformer: &'b Conformer,
    cells: RowCells<'b>,
    /// The fingerprint of its skeleton.
    print: Fingerprint,
    known: &'b SpellingMatch,
    place: Place<'b>,
    /// The number of earlier conformers of its line.
    rank: u16,
}

/// What comes of some conformers.
#[derive(Default)]
struct PartResult {
    found: FoundInOther,
    lines: Vec<u8>,
    /// By conformer, whether it is shared.
    is_shared: Vec<bool>,
}

/// The geometries of one conformer.
#[derive(Default)]
struct RowGeometries {
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
    pub(super) fn new(other: &'o OtherCorpus, plan: &'o AgainstPlan) -> Self {
        let others_files = other.files.iter().map(|name| canonical(name)).collect();
        let (name, canonical, ranks) = ("".into(), "".into(), LineRanks::default());
        let file = FileAt { name, canonical, is_in_other: false, before: 0, ranks };
        let (finder, found) = (Finder::default(), FoundInOther::default());
        Comparison { other, finder, others_files, file, plan, found }
    }

    /// Compares a batch.
    pub(super) fn add(&mut self, batch: &Batch) -> Result<BatchComparison> {
        if self.file.name != batch.file {
            let (name, canonical) = (batch.file.clone(), canonical(&batch.file));
            let is_in_other = self.others_files.contains(&canonical);
            self.file = FileAt { name, canonical, is_in_other, before: 0, ranks: LineRanks::default() };
        }
        let lines = |at: usize| batch.lines.get(at).copied();
        let ranks: Vec<u16> = (0..batch.conformers.len()).map(|at| self.file.ranks.next(lines(at))).collect();
        let prints: Vec<Fingerprint> = batch.conformers.par_iter().map(fingerprint).collect();
        let known = self.finder.find(self.other, &batch.conformers, &prints);
        let row = |at: usize| Row {
            conformer: &batch.conformers[at],
            cells: RowCells::new(batch, at),
            print: prints[at],
            known: &known[at],
            place: Place {
                file: &self.file.name,
                line: lines(at),
                conformer: self.file.before + at as u64 + 1,
            },
            rank: ranks[at],
        };
        let parts: Vec<Result<PartResult>> = (0..batch.conformers.len())
            .collect::<Vec<_>>()
            .par_chunks(CHUNK)
            .map(|chunk| {
                let mut part = PartResult::default();
                chunk.iter().try_for_each(|at| self.row(&row(*at), &mut part))?;
                Ok(part)
            })
            .collect();
        let (mut compared, mut is_shared) =
            (BatchComparison { lines: Vec::new(), kept: Vec::new() }, Vec::new());
        // In the order of the batch, so that the list does not depend on threads.
        for part in parts {
            let part = part?;
            self.found.merge(&part.found);
            compared.lines.extend(part.lines);
            is_shared.extend(part.is_shared);
        }
        self.file.before += batch.conformers.len() as u64;
        self.keep(batch, &is_shared, &mut compared.kept);
        Ok(compared)
    }

    /// Keeps the rows of which no conformer is shared.
    fn keep(&mut self, batch: &Batch, is_shared: &[bool], kept: &mut Vec<u8>) {
        let mut records = batch.rows.row_of.iter().zip(is_shared).peekable();
        for (at, row) in (0u32..).zip(batch.rows.rows()) {
            let mut is_dropped = false;
            while let Some((_, is_shared)) = records.next_if(|(row, _)| **row == at) {
                is_dropped |= *is_shared;
            }
            if is_dropped {
                self.found.counts.rows_dropped += 1;
            } else {
                self.found.counts.rows_kept += 1;
                kept.extend_from_slice(row);
            }
        }
    }

    fn row(&self, row: &Row<'_>, part: &mut PartResult) -> Result<()> {
        let mut shares = self.shares_of_keys(row);
        let counts = &mut part.found.counts;
        counts.rows_not_compared += u64::from(matches!(row.known, SpellingMatch::NotCompared));
        counts.rows_with_inchikey += u64::from(row.cells.inchikey.is_some());
        let mut geometry = RowGeometries::default();
        let (scaffold, shared) = match row.known {
            SpellingMatch::Shared(shared) => (shared.scaffold, Some(&**shared)),
            SpellingMatch::Absent(scaffold) => (*scaffold, None),
            SpellingMatch::NotCompared => (None, None),
        };
        if let Some(scaffold) = scaffold {
            let subsets = self.other.keys.scaffolds.subsets(scaffold);
            shares.set(SharedKind::Scaffold, self.other.subsets.told_apart(subsets));
            part.found.scaffolds.insert(scaffold);
        }
        if let Some(shared) = shared {
            geometry = self.compare(row, shared);
            self.count_molecule(shared, &geometry, &mut shares, &mut part.found);
        }
        let counts = &mut part.found.counts;
        for (kind, count) in [
            (SharedKind::Text, &mut counts.rows_with_shared_text),
            (SharedKind::InchiKey, &mut counts.rows_of_shared_inchikeys),
            (SharedKind::InchiKeyBlock, &mut counts.rows_of_shared_inchikey_blocks),
            (SharedKind::Scaffold, &mut counts.rows_of_shared_scaffolds),
        ] {
            *count += u64::from(shares.of(kind) != 0);
        }
        let is_shared = shares.has_any(&self.plan.shared_by);
        counts.rows_shared += u64::from(is_shared);
        part.is_shared.push(is_shared);
        part.found.datasets.add(row.cells.dataset, &shares);
        if self.plan.is_listed && is_shared {
            self.list(row, shared, &shares, &geometry, &mut part.lines)
        } else {
            Ok(())
        }
    }

    /// Looks up the text and the InChIKey of a conformer.
    fn shares_of_keys(&self, row: &Row<'_>) -> Shares {
        let (keys, subsets) = (&self.other.keys, &self.other.subsets);
        let mut shares = Shares::default();
        let text = text_fingerprint(row.print, row.conformer);
        let own = self.file.is_in_other.then(|| subsets.named(row.cells.test_subset));
        shares.set(SharedKind::Text, subsets.told_apart(keys.subsets_of_text(text, own)));
        if let Some(key) = row.cells.inchikey {
            let whole = keys.inchikeys.get(&key).copied().unwrap_or(0);
            let block = keys.blocks.get(&key.block()).copied().unwrap_or(0);
            shares.set(SharedKind::InchiKey, subsets.told_apart(whole));
            shares.set(SharedKind::InchiKeyBlock, subsets.told_apart(block));
        }
        shares
    }

    /// Counts a conformer of a shared molecule.
    fn count_molecule(
        &self,
        shared: &SkeletonMapping,
        geometry: &RowGeometries,
        shares: &mut Shares,
        found: &mut FoundInOther,
    ) {
        let (molecule, subsets) = (&self.other.molecules[shared.molecule], &self.other.subsets);
        let counts = &mut found.counts;
        let mirrored = geometry.pairs.iter().filter(|pair| pair.is_mirrored).count() as u64;
        // A conformer may have both kinds of pair. It counts once, and as a duplicate rather than a mirror image.
        let same = geometry.pairs.len() as u64 - mirrored;
        counts.rows_of_shared_molecules += 1;
        counts.rows_of_shared_isomers += u64::from(shared.isomer.is_some());
        counts.rows_with_duplicate += u64::from(same > 0);
        counts.rows_with_mirror_image += u64::from(same == 0 && mirrored > 0);
        counts.rows_without_geometry += u64::from(!geometry.has_geometry);
        counts.pairs += same;
        counts.mirror_pairs += mirrored;
        counts.rmsd_upper_bounds += geometry.upper_bounds;
        found.molecules.insert(shared.molecule as u32);
        found.isomers.extend(shared.isomer.map(|isomer| (shared.molecule as u32, isomer)));
        let first = self.other.first[shared.molecule];
        let met = || geometry.pairs.iter().filter(|pair| !pair.is_mirrored).map(|pair| pair.conformer);
        found.conformers.extend(met().map(|conformer| first + conformer as u32));
        let of_pairs = met().fold(0, |all, at| all | subsets.bit(molecule.conformers[at].subset));
        let of_isomer = shared.isomer.map_or(0, |isomer| molecule.isomers[isomer as usize].subsets);
        shares.set(SharedKind::Geometry, of_pairs);
        shares.set(SharedKind::Isomer, subsets.told_apart(of_isomer));
        shares.set(SharedKind::Molecule, subsets.told_apart(molecule.subsets));
    }

    /// Compares a conformer with those of the other corpus that could have the same geometry.
    fn compare(&self, compared: &Row<'_>, shared: &SkeletonMapping) -> RowGeometries {
        let (other, molecule) = (self.other, &self.other.molecules[shared.molecule]);
        let (Some(order), Some(topology)) = (&shared.order, molecule.topology(other.isotopes)) else {
            return RowGeometries::default();
        };
        let at = |block: &u32| other.encoding.angstrom(&compared.conformer.coordinates[*block as usize]);
        let own: Vec<[f64; 3]> = order.iter().filter_map(at).collect();
        let mut row = RowGeometries { has_geometry: true, ..RowGeometries::default() };
        let mut mirror: Option<Vec<[f64; 3]>> = None;
        // A mirror image has the same spread as its original, so this one search finds candidates of both kinds.
        for near in molecule.near(spread(&own), other.bound) {
            // If a corpus is compared with itself, each record would be its own duplicate.
            if self.is_itself(&molecule.conformers[near], compared) {
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

    /// Returns whether a conformer of the other corpus is the same record as the one it is compared with.
    fn is_itself(&self, conformer: &OtherConformer, row: &Row<'_>) -> bool {
        // Not all rows of the streamed file may be read, so their numbers may differ; their lines do not.
        let is_same = match row.place.line {
            Some(line) => u64::from(conformer.line) == line && conformer.rank == row.rank,
            None => u64::from(conformer.number) == row.place.conformer,
        };
        is_same && self.others_files[conformer.file as usize] == self.file.canonical
    }

    fn list(
        &self,
        row: &Row<'_>,
        shared: Option<&SkeletonMapping>,
        shares: &Shares,
        found: &RowGeometries,
        lines: &mut Vec<u8>,
    ) -> Result<()> {
        let molecule = smiles(&row.conformer.skeleton);
        let kinds: Vec<SharedKind> = shares.kinds().collect();
        let mut line = ListedPair {
            file: row.place.file,
            line: row.place.line,
            conformer: row.place.conformer,
            molecule: &molecule,
            shared: &kinds,
            same_stereo: shared.is_some_and(|shared| shared.isomer.is_some()),
            other_molecule: None,
            other_file: None,
            other_line: None,
            other_conformer: None,
            rmsd_angstrom: None,
            mirror_image: false,
        };
        // A conformer without a pair gets a line too, because what it shares is worth reporting by itself.
        let mut put = |line: &ListedPair<'_>| {
            serde_json::to_writer(&mut *lines, line).map_err(|e| Error::internal("a line of the list", e))?;
            lines.push(b'\n');
            Ok(())
        };
        let Some(shared) = shared else { return put(&line) };
        let OtherMolecule { isomers, conformers, .. } = &self.other.molecules[shared.molecule];
        let names: Vec<String> = isomers.iter().map(|isomer| smiles(&isomer.skeleton)).collect();
        let isomer = |at: u32| Some(&*names[at as usize]);
        line.other_molecule = isomer(shared.isomer.unwrap_or(0));
        if found.pairs.is_empty() {
            return put(&line);
        }
        // In the order of the other corpus.
        let mut pairs: Vec<(&OtherConformer, &FoundPair)> =
            found.pairs.iter().map(|pair| (&conformers[pair.conformer], pair)).collect();
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
