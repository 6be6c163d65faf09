//! Files of SMILES, one a line: the molecules that texts are asked for.

use std::path::Path;

use super::Skipped;
use drift_core::error::{Error, Result};
use drift_core::io::{self, BoundedLines, LineEnds};
use drift_core::job::{InputHash, Job};
use drift_core::text::skeleton::from_smiles;

/// The longest line of a file of SMILES: far more than a molecule and its name.
pub const MAX_SMILES_LINE_BYTES: usize = 1 << 20;

/// What is wrong with a file that is no list of SMILES.
const ONE_A_LINE: &str = "give one complete SMILES per line, as text";

/// A molecule that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmilesLine<'a> {
    /// Counted from 1.
    pub number: u64,
    /// As the file has it.
    pub smiles: &'a str,
    /// Its text with every block emptied.
    pub skeleton: &'a str,
}

/// What becomes of the rest of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// It is wanted too.
    Wanted,
    /// It is read for its hash and its end alone: a file that is damaged there is refused.
    Unwanted,
}

/// Hands on the molecules of a file with one SMILES a line, and anything after a space; lines that begin with `#` are
/// passed over, and lines that hold no SMILES handed on as skipped.
///
/// # Errors
/// If the file cannot be read or is not UTF-8, a line has more than [`MAX_SMILES_LINE_BYTES`], `visit` gives one, or the job
/// was cancelled.
pub fn each_prompt(
    path: &Path,
    job: &Job,
    visit: &mut dyn FnMut(Result<SmilesLine<'_>, Skipped>) -> Result<Rest>,
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

/// A line of a file that is not taken.
pub fn skipped_line(path: &Path, line: u64, reason: &str) -> Skipped {
    Skipped { file: io::file_name(path), record: format!("line {line}"), reason: reason.to_owned() }.shown()
}

/// The error of a file that holds no SMILES.
pub fn no_prompt(path: &Path, first: Option<&Skipped>) -> Error {
    let why = first.map_or("is empty".to_owned(), |skipped| {
        format!("contains no SMILES: {}, {}", skipped.record, skipped.reason)
    });
    Error::input(path.display(), why, "give one SMILES per line")
}
