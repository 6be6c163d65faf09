//! Encoding: turns conformers into the text that models are trained on.

mod kept;
mod pack;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;

use self::kept::{EncodedFiles, refuse_pipes};
pub use self::pack::{PackPlan, PackReport, PackedUnits, encode_packed};
use crate::corpus::{Conformer, Files, Listing, ReadOptions, SkippedRecord};
use crate::flaws::FlawKind;
use crate::parameter;
use crate::shard::files::{FilesDone, FilesShard, FilesSummary, MergedFiles, check_part};
use drift_core::chem::SmilesNotes;
use drift_core::encoding::TrailingZeros;
use drift_core::io::{AtomicFile, file_name, open};
use drift_core::job::Provenance;
use drift_core::text::{skeleton, write};
use drift_core::{Encoding, Error, Job, Result};

/// What to encode.
#[derive(Debug, Clone, Default)]
pub struct EncodePlan {
    /// The input files and folders.
    pub inputs: Vec<PathBuf>,
    /// How the files are read. [`required`](crate::corpus::SmilesSource::required) is always set.
    pub options: ReadOptions,
    /// What is left out: conformers that have any of these flaws. Another conformer counts as the original of a duplicate only if it is
    /// not left out itself.
    pub drop: Vec<FlawKind>,
}

/// The result of encoding.
#[derive(Debug, Serialize)]
pub struct EncodeReport {
    /// How coordinates are written. For decimals, both conventions for trailing zeros are written.
    pub encoding: Encoding,
    /// The number of encoded conformers, one line each.
    pub conformers: u64,
    /// The number of encoded conformers with a coordinate outside the encoding's range, which was written as the end of the range.
    pub out_of_range: u64,
    /// The number of conformers that were left out on request, by flaw; one may have several. They are also counted in `skipped`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, u64>,
    /// How the texts were packed, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<PackReport>,
    /// The number of skipped records.
    pub skipped: u64,
    /// The number of skipped records by reason, without the details of each record.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// The first of the skipped records.
    pub skipped_records: Vec<SkippedRecord>,
    /// Whether it was merged from shards of which some work is missing; the figures are then for the rest.
    pub interrupted: bool,
    /// The number of rows that were not asked for.
    pub left_out: u64,
    /// The number of encoded conformers with stereo that their SMILES leaves open.
    pub open_stereo: u64,
    /// The first of these conformers, with the positions of the stereo.
    pub open_stereo_records: Vec<SkippedRecord>,
    /// The number of encoded conformers with stereo marks that cannot be compared with coordinates.
    pub stereo_unchecked: u64,
    /// The number of encoded conformers, by reason, whose SMILES is not one that RDKit (and so 3DMolGen's encoder) would write.
    /// Their lines have the SMILES under `smiles` instead of `canonical_smiles`. Recognized by constructs that RDKit never writes;
    /// a different order of atoms is not recognized.
    pub not_canonical: BTreeMap<String, u64>,
    /// drift's version, and the inputs by name and hash.
    pub provenance: Provenance,
}

/// A line of the result, with the fields of 3DMolGen's JSONL.
#[derive(Serialize)]
struct Line<'a> {
    /// `None` if the conformer is named only by its number among all conformers, and that number is not known yet.
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    canonical_smiles: Option<&'a str>,
    /// The SMILES, if RDKit would write it differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    smiles: Option<&'a str>,
    embedded_smiles: &'a str,
    /// Only for decimals.
    #[serde(skip_serializing_if = "Option::is_none")]
    embedded_smiles_stripped: Option<&'a str>,
    /// The encoding of the texts, unless they are the decimals that a row without it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<Encoding>,
}

/// The number of conformers that one task writes.
const CHUNK: usize = 256;

/// A function that receives the text.
pub type LineSink<'p> = dyn FnMut(&[u8]) -> Result<()> + 'p;

/// Writes a line for each conformer that matches its SMILES, in input order, and reports the others.
///
/// # Errors
/// The errors of [`corpus::read`](crate::corpus::read()), and those of `out`.
pub fn encode(plan: &EncodePlan, job: &Job, out: &mut LineSink<'_>) -> Result<EncodeReport> {
    plan.refuse_pipes()?;
    let listing = Listing::from_inputs(&plan.inputs)?;
    let options = plan.read_options();
    let files =
        EncodedFiles { listing: &listing, files: 0..listing.len(), options: &options, drop: &plan.drop };
    let came = lines_of(&files, Some(0), job, out)?;
    came.summary.refuse_if_empty(&plan.inputs)?;
    Ok(EncodeReport::of(came, plan.options.reading.encoding))
}

/// Encodes the files of a shard, each part into its own file. Conformers that are named only by their number among all conformers
/// get their names when shards are merged.
///
/// # Errors
/// The errors of [`encode`].
pub fn encode_shard(plan: &EncodePlan, shard: &mut FilesShard, job: &Job) -> Result<FilesDone> {
    if plan.drop.iter().any(|kind| kind.is_duplicate()) {
        let problem = "finds duplicates among all conformers, and a shard has a part of them";
        let remedy = "merge the shards, and encode the result with it";
        return Err(Error::parameter(parameter::DROP, problem, remedy));
    }
    let options = plan.read_options();
    shard.run("jsonl", job, &mut |listing, files, path| {
        let mut file = AtomicFile::create(path)?;
        let files = EncodedFiles { listing, files, options: &options, drop: &plan.drop };
        let came = lines_of(&files, None, job, &mut |bytes| file.put(bytes))?;
        Ok((came, file))
    })
}

/// Concatenates the lines of all shards.
///
/// # Errors
/// If a part is not what its shard wrote, or `out` fails.
pub fn merge_encoded(
    shards: &MergedFiles,
    encoding: Encoding,
    job: &Job,
    out: &mut LineSink<'_>,
) -> Result<EncodeReport> {
    let mut number = 0u64;
    let mut line = Vec::new();
    for (path, part) in &shards.parts {
        let fail = |e| job.check().err().unwrap_or_else(|| Error::io(path, e));
        let mut opened = open(path, job);
        loop {
            line.clear();
            if opened.reader.read_until(b'\n', &mut line).map_err(fail)? == 0 {
                break;
            }
            match line.strip_prefix(NAMELESS) {
                // Only now is the number of conformers in the earlier parts known.
                Some(rest) => {
                    out(format!("{{\"id\":\"{number}\"").as_bytes())?;
                    out(rest)?;
                }
                None => out(&line)?,
            }
            number += 1;
        }
        let found = opened.finish(file_name(path)).map_err(fail)?;
        check_part(path, &found, part)?;
    }
    let came = shards.came();
    came.summary.refuse_if_empty(&[])?;
    Ok(EncodeReport::of(came, encoding))
}

impl EncodePlan {
    /// Returns how files are read: a text without its SMILES would be useless as a training example.
    fn read_options(&self) -> ReadOptions {
        let mut options = self.options.clone();
        options.smiles.required = true;
        options
    }

    fn refuse_pipes(&self) -> Result<()> {
        refuse_pipes(&Files { inputs: self.inputs.clone(), options: self.options.clone() }, &self.drop)
    }
}

/// The start of the line of a conformer without a name.
const NAMELESS: &[u8] = b"{\"id\":null";

impl EncodeReport {
    fn of(came: FilesSummary, encoding: Encoding) -> Self {
        let FilesSummary { mut summary, skipped_by_reason, mut notes, dropped, beside, .. } = came;
        summary.inputs.extend(beside);
        EncodeReport {
            encoding,
            conformers: summary.conformers,
            out_of_range: summary.out_of_range,
            dropped,
            pack: None,
            skipped: summary.skipped,
            skipped_by_reason,
            skipped_records: summary.skipped_records,
            interrupted: summary.is_partial,
            left_out: summary.left_out,
            open_stereo: summary.open_stereo,
            open_stereo_records: summary.open_stereo_records,
            stereo_unchecked: notes.remove(UNCHECKED).unwrap_or(0),
            not_canonical: notes,
            provenance: Provenance::from_inputs(summary.inputs),
        }
    }
}

/// Writes the lines of some files. `first` is the number of their first conformer; without it, conformers get no numbers.
fn lines_of(
    files: &EncodedFiles<'_>,
    first: Option<u64>,
    job: &Job,
    out: &mut LineSink<'_>,
) -> Result<FilesSummary> {
    let encoding = files.options.reading.encoding;
    let (mut number, mut notes) = (first, BTreeMap::new());
    let came = files.read(job, &mut |kept| {
        let conformers = &kept.batch.conformers;
        let chunks: Vec<Lines> = conformers
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, conformers)| {
                lines(conformers, number.map(|n| n + (chunk * CHUNK) as u64), encoding)
            })
            .collect();
        number = number.map(|number| number + conformers.len() as u64);
        chunks.iter().try_for_each(|chunk| {
            for (note, count) in &chunk.notes {
                *notes.entry((*note).to_owned()).or_default() += count;
            }
            out(&chunk.bytes)
        })
    })?;
    Ok(FilesSummary { notes, ..came })
}

/// Returns the lines of some conformers. `first` is the number of the first one among all conformers, if known.
fn lines(conformers: &[Conformer], first: Option<u64>, encoding: Encoding) -> Lines {
    let [fixed, stripped] =
        [TrailingZeros::Kept, TrailingZeros::Removed].map(|zeros| encoding.with_zeros(zeros));
    let mut out = Vec::with_capacity(conformers.iter().map(|c| 70 * c.coordinates.len() + 200).sum());
    let (mut notes, mut named) = (BTreeMap::new(), SmilesOfConformers::default());
    for (at, conformer) in conformers.iter().enumerate() {
        let text = |encoding: Encoding| write(&conformer.skeleton, &conformer.coordinates, encoding);
        let (number, without_zeros);
        let NamedMolecule { smiles, foreign } = named.find(conformer, &mut notes);
        let smiles = &*smiles;
        let line = Line {
            id: match (&conformer.id, first) {
                (Some(id), _) => Some(id),
                (None, Some(first)) => {
                    number = (first + at as u64).to_string();
                    Some(&number)
                }
                (None, None) => None,
            },
            canonical_smiles: Some(smiles).filter(|_| foreign.is_none()),
            smiles: Some(smiles).filter(|_| foreign.is_some()),
            embedded_smiles: &text(fixed),
            embedded_smiles_stripped: if encoding.is_decimal() {
                without_zeros = text(stripped);
                Some(&without_zeros)
            } else {
                None
            },
            encoding: (!Encoding::ALL.contains(&encoding)).then_some(encoding),
        };
        // Writing to memory cannot fail, and every field is text.
        let _ = serde_json::to_writer(&mut out, &line);
        let _ = out.write_all(b"\n");
    }
    Lines { bytes: out, notes }
}

/// The SMILES of conformers, one after the other.
#[derive(Default)]
struct SmilesOfConformers<'c> {
    /// The notes of the last SMILES, since conformers of a molecule follow one another.
    last: Option<(&'c Arc<str>, SmilesNotes)>,
}

/// The SMILES of a conformer, and why RDKit would write it differently, if it would.
struct NamedMolecule<'c> {
    smiles: Cow<'c, str>,
    foreign: Option<&'static str>,
}

impl<'c> SmilesOfConformers<'c> {
    /// Returns the SMILES of a conformer. Counts the conformer for each note.
    fn find(
        &mut self,
        conformer: &'c Conformer,
        notes: &mut BTreeMap<&'static str, u64>,
    ) -> NamedMolecule<'c> {
        let smiles: Cow<'c, str> = if conformer.molecule == conformer.skeleton {
            // A text that does not name its molecule gets the SMILES of its own skeleton.
            Cow::Owned(skeleton::smiles(&conformer.skeleton))
        } else {
            Cow::Borrowed(&conformer.molecule)
        };
        let SmilesNotes { foreign, has_unchecked_stereo } = match (conformer.notes, self.last) {
            (Some(known), _) => known,
            (None, Some((molecule, known))) if *molecule == conformer.molecule => known,
            _ => self.last.insert((&conformer.molecule, SmilesNotes::of_smiles(&smiles))).1,
        };
        for note in foreign.into_iter().chain(has_unchecked_stereo.then_some(UNCHECKED)) {
            *notes.entry(note).or_default() += 1;
        }
        NamedMolecule { smiles, foreign }
    }
}

/// The lines of some conformers, and the number of conformers for each note.
struct Lines {
    bytes: Vec<u8>,
    notes: BTreeMap<&'static str, u64>,
}

/// The note for stereo marks that are not compared with coordinates.
const UNCHECKED: &str = "stereo is not checked";

/// Returns the general part of a reason, without the details of the record.
fn kind(reason: &str) -> String {
    let general = reason.split_once(':').map_or(reason, |(general, _)| general);
    let without = |text: &str| {
        let words =
            text.split(' ').map(|word| if word.bytes().any(|b| b.is_ascii_digit()) { "…" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    drift_core::error::shortened_end(&without(general), 120)
}
