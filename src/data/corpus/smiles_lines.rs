//! Reads files with one SMILES per line: the molecules for which texts are requested.

use std::path::Path;

use super::SkippedRecord;
use drift_core::io::{self, BoundedLines, LineEnds};
use drift_core::job::InputHash;
use drift_core::text::skeleton::from_smiles;
use drift_core::{Error, Job, Result};

/// The longest line of a SMILES file in bytes, far more than a molecule and its name need.
pub(crate) const MAX_SMILES_LINE_BYTES: usize = 1 << 20;

/// The remedy for a file that is not a list of SMILES.
const ONE_A_LINE: &str = "give one complete SMILES per line, as text";

/// A molecule that is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmilesLine<'a> {
    /// The line number, counted from 1.
    pub number: u64,
    /// The SMILES, as the file has it.
    pub smiles: &'a str,
    /// Its enriched text with every block emptied.
    pub skeleton: &'a str,
}

/// What to do with the rest of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Visit it too.
    Wanted,
    /// Read it only for the file's hash and to check that it is not damaged.
    Unwanted,
}

/// Passes the molecules of a file to `visit`. Each line holds one SMILES, and anything after white space is ignored. Lines that
/// begin with `#` are ignored, and lines whose SMILES is invalid are passed as skipped.
///
/// # Errors
/// If the file cannot be read or is not UTF-8, a line is longer than [`MAX_SMILES_LINE_BYTES`], `visit` fails, or the job was
/// cancelled.
pub(crate) fn each_prompt(
    path: &Path,
    job: &Job,
    visit: &mut dyn FnMut(Result<SmilesLine<'_>, SkippedRecord>) -> Result<Rest>,
) -> Result<InputHash> {
    let mut opened = io::open(path, job);
    let fail = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::InvalidData => Error::input(path.display(), error, ONE_A_LINE),
        _ => job.check().err().unwrap_or_else(|| Error::io(path, error)),
    };
    let mut lines = BoundedLines::with_ends(&mut opened.reader, MAX_SMILES_LINE_BYTES, LineEnds::Any);
    while let Some(line) = lines.next_line().map_err(fail)? {
        if line.cut {
            let problem = format!("line {} is longer than {MAX_SMILES_LINE_BYTES} bytes", line.number);
            return Err(Error::input(path.display(), problem, ONE_A_LINE));
        }
        let text = std::str::from_utf8(line.bytes).map_err(|e| {
            let problem = format!("line {}: byte {} is not UTF-8", line.number, e.valid_up_to() + 1);
            Error::input(path.display(), problem, "save the file as UTF-8")
        })?;
        let Some(smiles) = text.split_whitespace().next().filter(|smiles| !smiles.starts_with('#')) else {
            continue;
        };
        let rest = match from_smiles(smiles) {
            Ok(skeleton) => visit(Ok(SmilesLine { number: line.number, smiles, skeleton: &skeleton }))?,
            Err(reason) => visit(Err(skipped_line(path, line.number, &reason.to_string())))?,
        };
        if rest == Rest::Unwanted {
            break;
        }
    }
    opened.finish(io::file_name(path)).map_err(fail)
}

/// Returns the record of a skipped line of a file.
pub(crate) fn skipped_line(path: &Path, line: u64, reason: &str) -> SkippedRecord {
    SkippedRecord { file: io::file_name(path), record: format!("line {line}"), reason: reason.to_owned() }
        .shown()
}

/// Returns the error for a file without any SMILES.
pub(crate) fn no_prompt(path: &Path, first: Option<&SkippedRecord>) -> Error {
    let why = first.map_or("is empty".to_owned(), |skipped| {
        format!("contains no SMILES: {}, {}", skipped.record, skipped.reason)
    });
    Error::input(path.display(), why, "give one SMILES per line")
}
