//! Reads the conformers that are encoded: those whose text is the molecule of their SMILES, and that have none of certain flaws.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::kind;
use crate::corpus::{
    Batch, Conformer, Conformers, Files, Listing, ReadOptions, ReadSummary, SKIPPED_LISTED, SkippedRecord,
    written_in_texts,
};
use crate::flaws::{DUPLICATE_ANGSTROM, FlawKind, JudgePass, KeyPass, PlaceCounter, RowPlace};
use crate::parameter;
use crate::shard::files::{FilesSummary, add_counts};
use rayon::prelude::*;

use drift_core::chem::{SameGraph, same_graph};
use drift_core::text::skeleton;
use drift_core::{Encoding, Error, Job, Result};

/// Some files that are encoded.
pub(super) struct EncodedFiles<'e> {
    pub listing: &'e Listing,
    pub files: Range<usize>,
    pub options: &'e ReadOptions,
    /// What is left out.
    pub drop: &'e [FlawKind],
}

/// Conformers to encode.
pub(super) struct KeptBatch {
    pub batch: Batch,
    /// The place of each conformer.
    pub places: Vec<RowPlace>,
}

impl EncodedFiles<'_> {
    /// Passes on the conformers that are encoded.
    ///
    /// # Errors
    /// The errors of [`corpus::read`](crate::corpus::read()), and those of `each`.
    pub(super) fn read(
        &self,
        job: &Job,
        each: &mut dyn FnMut(KeptBatch) -> Result<()>,
    ) -> Result<FilesSummary> {
        let (mut drop, mut left_out) = (self.drop_pass(job)?, LeftOut::default());
        let encoding = self.options.reading.encoding;
        let (mut places, mut skipped_by_reason) = (PlaceCounter::default(), BTreeMap::new());
        let mut summary = self.listing.read(self.files.clone(), self.options, job, &mut |batch| {
            for skipped in &batch.skipped {
                *skipped_by_reason.entry(kind(&skipped.reason)).or_default() += 1;
            }
            let batch = without_extensions(batch);
            let problems = problems_of_names(&batch.conformers);
            let kept = match &mut drop {
                None => KeptBatch { places: places.places(&batch), batch }.named(
                    problems,
                    encoding,
                    &mut left_out,
                ),
                Some(drop) => drop.keep(batch, problems, encoding, &mut left_out),
            };
            each(kept)
        })?;
        if let Some(before) = drop.and_then(|drop| drop.before) {
            summary.refuse_if_changed(&before)?;
        }
        add_counts(&mut skipped_by_reason, left_out.by_reason);
        summary.skip_read(left_out.count, left_out.out_of_range, left_out.records);
        let dropped = left_out.by_kind;
        Ok(FilesSummary { skipped_by_reason, dropped, ..FilesSummary::new(summary, self.options) })
    }

    /// Prepares to leave conformers out; `None` if all are encoded. Duplicates take a first pass over the files.
    fn drop_pass(&self, job: &Job) -> Result<Option<DropPass>> {
        let encoding = self.options.reading.encoding;
        if self.drop.is_empty() {
            return Ok(None);
        }
        if !self.drop.iter().any(|kind| kind.is_duplicate()) {
            let pass = JudgePass::alone(encoding);
            return Ok(Some(DropPass { kinds: self.drop.to_vec(), pass, before: None }));
        }
        let mut keys = KeyPass::new(encoding, DUPLICATE_ANGSTROM, self.drop);
        let before = self.listing.read(self.files.clone(), self.options, job, &mut |batch| {
            let batch = without_extensions(batch);
            let problems = problems_of_names(&batch.conformers);
            keys.add(&batch.conformers, |at| problems[at].is_some())
        })?;
        Ok(Some(DropPass { kinds: self.drop.to_vec(), pass: keys.finish(), before: Some(before) }))
    }
}

/// Refuses inputs that can be read only once, if duplicates are to be left out.
///
/// # Errors
/// If there is such an input.
pub(super) fn refuse_pipes(files: &Files, drop: &[FlawKind]) -> Result<()> {
    if !drop.iter().any(|kind| kind.is_duplicate()) || files.can_be_read_again().is_ok() {
        return Ok(());
    }
    let problem = "reads its input twice to find duplicates, and a pipe can be read once";
    Err(Error::parameter(parameter::DROP, problem, "write it to a file first"))
}

/// Leaves conformers with certain flaws out.
struct DropPass {
    kinds: Vec<FlawKind>,
    pass: JudgePass,
    /// The result of the first pass over the files.
    before: Option<ReadSummary>,
}

/// The conformers that were left out.
#[derive(Default)]
struct LeftOut {
    count: u64,
    /// Those with a coordinate beyond the range of the encoding.
    out_of_range: u64,
    /// Those that have each flaw.
    by_kind: BTreeMap<String, u64>,
    /// Those whose first flaw it is.
    by_reason: BTreeMap<String, u64>,
    /// The first of them.
    records: Vec<SkippedRecord>,
}

impl LeftOut {
    /// Counts a conformer, and lists it if it is one of the first.
    fn add(&mut self, place: &RowPlace, is_out_of_range: bool, reason: String) {
        *self.by_reason.entry(kind(&reason)).or_default() += 1;
        self.count += 1;
        self.out_of_range += u64::from(is_out_of_range);
        if self.records.len() < SKIPPED_LISTED {
            self.records.push(place.skipped(reason));
        }
    }
}

/// Returns the conformers of texts with their SMILES alone: what stands behind white space is an extension (CXSMILES) or a name, and no
/// part of a prompt.
fn without_extensions(mut batch: Batch) -> Batch {
    for conformer in batch.conformers.iter_mut().filter(|conformer| conformer.notes.is_none()) {
        let smiles = conformer.molecule.split_whitespace().next().unwrap_or_default();
        if smiles.len() != conformer.molecule.len() {
            conformer.molecule = smiles.into();
        }
    }
    batch
}

/// How many conformers one thread compares with their SMILES at a time.
const CHUNK: usize = 256;

/// Returns why texts are not the molecules of their SMILES, which would teach a model to write another molecule than it is asked for;
/// `None` for those that are.
fn problems_of_names(conformers: &[Conformer]) -> Vec<Option<String>> {
    let chunks = conformers.par_chunks(CHUNK);
    chunks
        .flat_map_iter(|chunk| {
            let mut names = TextNames::default();
            chunk.iter().map(move |one| names.problem(one)).collect::<Vec<_>>()
        })
        .collect()
}

/// Compares texts with their SMILES.
#[derive(Default)]
struct TextNames {
    /// The molecule and the skeleton of the last text, and what is wrong with them. Conformers of a molecule follow one another.
    last: Option<(Arc<str>, Arc<str>, Option<String>)>,
}

impl TextNames {
    /// Returns what is wrong with the SMILES of a text. Formats with atoms have notes, and were compared when they were read.
    fn problem(&mut self, conformer: &Conformer) -> Option<String> {
        let Conformer { molecule, skeleton, notes, .. } = conformer;
        // A text without a SMILES is named by its own skeleton.
        if notes.is_some() || molecule == skeleton {
            return None;
        }
        if let Some((last, text, problem)) = &self.last
            && last == molecule
            && text == skeleton
        {
            return problem.clone();
        }
        let problem = problem_of_name(molecule, &skeleton::smiles(skeleton));
        self.last = Some((molecule.clone(), skeleton.clone(), problem.clone()));
        problem
    }
}

/// Returns why a SMILES is not that of a text, whose own SMILES is `text`.
fn problem_of_name(smiles: &str, text: &str) -> Option<String> {
    if smiles == text {
        return None;
    }
    // As texts write it: without map numbers.
    let written = written_in_texts(smiles);
    match same_graph(text, written.as_deref().unwrap_or(smiles)) {
        Ok(SameGraph::Identical | SameGraph::Equivalent) => None,
        Ok(SameGraph::Different) => Some("its text is another molecule than its SMILES".to_owned()),
        Err(problem) => Some(format!("its SMILES cannot be compared with its text: {problem}")),
    }
}

impl KeptBatch {
    /// Returns the conformers without a problem, and counts the others.
    fn named(self, problems: Vec<Option<String>>, encoding: Encoding, left_out: &mut LeftOut) -> Self {
        let KeptBatch { mut batch, places } = self;
        let mut kept_places = Vec::with_capacity(places.len());
        let all = std::mem::take(&mut batch.conformers).into_iter().zip(places).zip(problems);
        for ((conformer, place), problem) in all {
            match problem {
                Some(problem) => left_out.add(&place, conformer.is_out_of_range(encoding), problem),
                None => {
                    batch.conformers.push(conformer);
                    kept_places.push(place);
                }
            }
        }
        KeptBatch { batch, places: kept_places }
    }
}

impl DropPass {
    fn keep(
        &mut self,
        mut batch: Batch,
        problems: Vec<Option<String>>,
        encoding: Encoding,
        left_out: &mut LeftOut,
    ) -> KeptBatch {
        let rows = self.pass.judge(&batch);
        self.kinds.iter().for_each(|kind| _ = left_out.by_kind.entry(kind.name().to_owned()).or_default());
        let (mut conformers, mut places) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let all = std::mem::take(&mut batch.conformers).into_iter().zip(rows).zip(problems);
        for ((conformer, row), problem) in all {
            if let Some(problem) = problem {
                left_out.add(&row.place, conformer.is_out_of_range(encoding), problem);
                continue;
            }
            let Some(first) = row.flaws.first_of(&self.kinds) else {
                conformers.push(conformer);
                places.push(row.place);
                continue;
            };
            for kind in row.flaws.kinds().filter(|kind| self.kinds.contains(kind)) {
                *left_out.by_kind.entry(kind.name().to_owned()).or_default() += 1;
            }
            let original = row.original.as_ref().filter(|_| first.is_duplicate());
            let of = original.map_or_else(String::new, |of| format!(": of {}, {}", of.file, of.record()));
            let reason = format!("left out as {}{of}", first.name());
            left_out.add(&row.place, conformer.is_out_of_range(encoding), reason);
        }
        batch.conformers = conformers;
        KeptBatch { batch, places }
    }
}
