//! Encoding: conformers in, the text that models are trained on out.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;

use crate::corpus::{Conformer, Conformers, Files, ReadOptions, Skipped};
use crate::error::Result;
use crate::job::{Job, Provenance};
use crate::text::{Dialect, Reading, TrailingZeros, skeleton, write};

/// What to read, and how.
#[derive(Debug, Clone, Default)]
pub struct EncodePlan {
    /// Files and folders.
    pub inputs: Vec<PathBuf>,
    /// How they are read. [`required`](crate::corpus::SmilesSource::required) is set.
    pub options: ReadOptions,
}

/// What was encoded.
#[derive(Debug, Serialize)]
pub struct EncodeReport {
    /// Conformers, one line each.
    pub conformers: u64,
    /// How many records were skipped.
    pub skipped: u64,
    /// How many for which reason, without what is particular to a record.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// The first of them.
    pub skipped_records: Vec<Skipped>,
    /// Conformers among the encoded with stereo that their SMILES leaves open.
    pub open_stereo: u64,
    /// The first of them, and where.
    pub open_stereo_records: Vec<Skipped>,
    /// drift's version, and the inputs by name and hash.
    pub provenance: Provenance,
}

/// A line of the result, fields as in the JSONL of 3DMolGen.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    canonical_smiles: &'a str,
    embedded_smiles: &'a str,
    embedded_smiles_stripped: &'a str,
}

/// Conformers that one task writes.
const CHUNK: usize = 256;

/// Writes a line for each conformer that is the molecule of its SMILES, in the order of the input, and says which are not.
///
/// # Errors
/// As [`corpus::read`](crate::corpus::read()), and what `out` gives.
pub fn encode(
    plan: &EncodePlan,
    job: &Job,
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<EncodeReport> {
    let mut options = plan.options.clone();
    options.smiles.required = true;
    let reading = options.reading;
    let files = Files { inputs: plan.inputs.clone(), options };
    let (mut number, mut skipped_by_reason) = (0u64, BTreeMap::new());
    let summary = files.read(job, &mut |batch| {
        for skipped in &batch.skipped {
            *skipped_by_reason.entry(kind(&skipped.reason)).or_default() += 1;
        }
        let chunks: Vec<Vec<u8>> = batch
            .conformers
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, conformers)| lines(conformers, number + (chunk * CHUNK) as u64, reading))
            .collect();
        number += batch.conformers.len() as u64;
        chunks.iter().try_for_each(|chunk| out(chunk))
    })?;
    Ok(EncodeReport {
        conformers: summary.conformers,
        skipped: summary.skipped,
        skipped_by_reason,
        skipped_records: summary.skipped_records,
        open_stereo: summary.open_stereo,
        open_stereo_records: summary.open_stereo_records,
        provenance: Provenance::of(summary.inputs),
    })
}

/// The lines of conformers, the first of which is the `first` of all.
fn lines(conformers: &[Conformer], first: u64, reading: Reading) -> Vec<u8> {
    let [fixed, stripped] = [TrailingZeros::Kept, TrailingZeros::Removed].map(|zeros| reading.dialect(zeros));
    let mut out = Vec::with_capacity(conformers.iter().map(|c| 70 * c.coordinates.len() + 200).sum());
    for (at, conformer) in (first..).zip(conformers) {
        let text = |dialect: Dialect| write(&conformer.skeleton, &conformer.coordinates, dialect);
        let (number, smiles);
        let line = Line {
            id: match &conformer.id {
                Some(id) => id,
                None => {
                    number = at.to_string();
                    &number
                }
            },
            canonical_smiles: if conformer.molecule == conformer.skeleton {
                smiles = skeleton::smiles(&conformer.skeleton);
                &smiles
            } else {
                &conformer.molecule
            },
            embedded_smiles: &text(fixed),
            embedded_smiles_stripped: &text(stripped),
        };
        // Writing to memory cannot fail, and every field is text.
        let _ = serde_json::to_writer(&mut out, &line);
        let _ = out.write_all(b"\n");
    }
    out
}

/// What a reason says before it goes into what is particular to a record.
fn kind(reason: &str) -> String {
    let general = reason.split_once(':').map_or(reason, |(general, _)| general);
    let without = |text: &str| {
        let words =
            text.split(' ').map(|word| if word.bytes().any(|b| b.is_ascii_digit()) { "…" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    crate::error::shortened_end(&without(general), 120)
}
