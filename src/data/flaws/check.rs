//! Checks a corpus in two passes: the first collects a key of each conformer, the second judges each conformer and compares those
//! that may be duplicates.

use std::sync::Arc;

use rayon::prelude::*;

use super::duplicates::{Closeness, Duplicate, DuplicateFinder, PlacedRow};
use super::kind::{FlawKind, Flaws};
use super::molecule_key::MoleculeKey;
use super::place::{PlaceCounter, RowPlace};
use super::row_judge::RowJudge;
use super::row_key::{Cells, RowKeys};
use crate::against::{fingerprint, text_fingerprint};
use crate::audit::in_angstrom;
use crate::audit::spread::spread;
use crate::corpus::{AtomOrder, Batch, Conformer};
use drift_core::{Encoding, Result};

/// The number of conformers in one parallel task.
const CHUNK: usize = 256;

/// The first pass.
#[derive(Debug)]
pub(crate) struct KeyPass {
    closeness: Closeness,
    keys: RowKeys,
    /// Conformers with one of these flaws are compared with none: another conformer is no duplicate of what is left out.
    left_out: Vec<FlawKind>,
}

/// The key of one conformer.
struct ConformerKey {
    molecule: u32,
    cell: [u16; 3],
}

impl KeyPass {
    /// `bound` is the largest RMSD of duplicates, in Å.
    pub(crate) fn new(encoding: Encoding, bound: f64, left_out: &[FlawKind]) -> Self {
        let left_out = left_out.iter().copied().filter(|kind| !kind.is_duplicate()).collect();
        let closeness = Closeness { encoding, bound, cells: Cells::within(bound) };
        KeyPass { closeness, keys: RowKeys::new(), left_out }
    }

    /// Adds conformers, without those at places for which `is_left_out`.
    ///
    /// # Errors
    /// If there are more than 2³² of them.
    pub(crate) fn add(
        &mut self,
        conformers: &[Conformer],
        is_left_out: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let chunks = conformers.par_chunks(CHUNK);
        let keys: Vec<Vec<Option<ConformerKey>>> = chunks.map(|chunk| self.keys_of(chunk)).collect();
        keys.into_iter().flatten().enumerate().try_for_each(|(at, key)| match key {
            Some(key) if !is_left_out(at) => self.keys.push(key.molecule, key.cell),
            _ => {
                self.keys.skip();
                Ok(())
            }
        })
    }

    fn keys_of(&self, conformers: &[Conformer]) -> Vec<Option<ConformerKey>> {
        let (mut judge, mut last) = (RowJudge::default(), None);
        let mut keys = Vec::with_capacity(conformers.len());
        for conformer in conformers {
            let points = in_angstrom(&conformer.coordinates, self.closeness.encoding);
            let is_left_out = !self.left_out.is_empty()
                && judge
                    .flaws(conformer, &points, self.closeness.encoding)
                    .first_of(&self.left_out)
                    .is_some();
            keys.push((!is_left_out).then(|| self.key(conformer, &points, &mut last)));
        }
        keys
    }

    fn key(
        &self,
        conformer: &Conformer,
        points: &[[f64; 3]],
        last: &mut Option<(Arc<str>, MoleculeKey)>,
    ) -> ConformerKey {
        if conformer.order == AtomOrder::File || points.is_empty() {
            // Only its text is compared.
            let text = text_fingerprint(fingerprint(conformer), conformer);
            let part = |at: u32| (text >> (16 * at)) as u16;
            return ConformerKey { molecule: (text >> 64) as u32, cell: [0, 1, 2].map(part) };
        }
        let known = match last.take() {
            Some(known) if *known.0 == *conformer.skeleton => known,
            _ => (conformer.skeleton.clone(), MoleculeKey::of_skeleton(&conformer.skeleton)),
        };
        let cell = self.closeness.cells.cell(spread(&known.1.compared(points)));
        let molecule = known.1.key;
        *last = Some(known);
        ConformerKey { molecule, cell }
    }

    /// Returns the second pass, over the same conformers.
    pub(crate) fn finish(self) -> JudgePass {
        JudgePass {
            encoding: self.closeness.encoding,
            finder: Some(DuplicateFinder::new(self.keys.candidates(), self.closeness)),
            before: 0,
            places: PlaceCounter::default(),
        }
    }
}

/// The second pass.
#[derive(Debug)]
pub(crate) struct JudgePass {
    encoding: Encoding,
    /// `None` if duplicates are not asked for.
    finder: Option<DuplicateFinder>,
    /// The number of conformers before this batch.
    before: u64,
    places: PlaceCounter,
}

/// A conformer with its flaws.
#[derive(Debug, Clone)]
pub(crate) struct JudgedRow {
    pub flaws: Flaws,
    pub place: RowPlace,
    /// The conformer of which this is a duplicate.
    pub original: Option<RowPlace>,
    /// Whether too much symmetry kept it from being compared with some conformer.
    pub is_undecided: bool,
}

impl JudgePass {
    /// Returns a single pass that looks for no duplicates.
    pub(crate) fn alone(encoding: Encoding) -> Self {
        JudgePass { encoding, finder: None, before: 0, places: PlaceCounter::default() }
    }

    /// Judges the conformers of a batch, in order.
    pub(crate) fn judge(&mut self, batch: &Batch) -> Vec<JudgedRow> {
        let places = self.places.places(batch);
        let rows: Vec<PlacedRow<'_>> = batch
            .conformers
            .iter()
            .zip(places)
            .map(|(conformer, place)| PlacedRow { conformer, place })
            .collect();
        let duplicates =
            self.finder.as_mut().map(|finder| finder.find(&rows, self.before)).unwrap_or_default();
        let flaws = rows.par_chunks(CHUNK).flat_map_iter(|chunk| flaws_of(chunk, self.encoding));
        let flaws: Vec<Flaws> = flaws.collect();
        let judged = rows.into_iter().zip(flaws).map(|(row, flaws)| JudgedRow {
            flaws,
            place: row.place,
            original: None,
            is_undecided: false,
        });
        let mut judged: Vec<JudgedRow> = judged.collect();
        for (at, duplicate) in duplicates {
            judged[at].add(duplicate);
        }
        self.before += batch.conformers.len() as u64;
        judged
    }
}

impl JudgedRow {
    fn add(&mut self, duplicate: Duplicate) {
        duplicate.add_to(&mut self.flaws);
        self.original = duplicate.original;
        self.is_undecided = duplicate.is_undecided;
    }
}

fn flaws_of(rows: &[PlacedRow<'_>], encoding: Encoding) -> Vec<Flaws> {
    let mut judge = RowJudge::default();
    let points = |row: &PlacedRow<'_>| in_angstrom(&row.conformer.coordinates, encoding);
    rows.iter().map(|row| judge.flaws(row.conformer, &points(row), encoding)).collect()
}
