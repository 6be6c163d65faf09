//! The texts of a row, whatever the format of rows, and the conformers that they become.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Batch, Cells, Conformer, Frame, IsomerPool, ReadOptions, SkippedRecord, frame, plain};
use drift_core::encoding::{Precision, Reading, TrailingZeros};
use drift_core::{Encoding, Error};
use memchr::memmem;

/// The problem with a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowError {
    /// A bad record, which is skipped, for this reason.
    Bad(String),
    /// The row and the user name different encodings of its text, so nothing may be read until the user decides.
    Contradiction {
        /// The encoding that the row states.
        stated: Encoding,
        /// The encoding that the user names.
        wanted: Encoding,
    },
}

impl From<String> for RowError {
    fn from(reason: String) -> Self {
        RowError::Bad(reason)
    }
}

/// One text of a row: a conformer that is not parsed yet.
#[derive(Debug, Default)]
pub(super) struct RowText<'t> {
    /// The texts of fields that are there to hold a text, best first.
    pub known: Vec<Cow<'t, str>>,
    /// Other fields that may hold a text, with their names, in the order of the row.
    pub others: Vec<(Cow<'t, str>, Cow<'t, str>)>,
    /// The SMILES of the molecule, if the row gives one.
    pub name: Option<Cow<'t, str>>,
    /// The name of the row, if names were requested.
    pub id: Option<Arc<str>>,
    /// How the text is encoded, if the row says so: a name, or an object of format `drift.encoding/1`.
    pub encoding: Option<serde_json::Value>,
    /// The isomers that the row pools.
    pub pool: Option<Arc<IsomerPool>>,
    /// Its place in the row; empty for the only text of a row.
    pub place: String,
    /// The values of the columns that are kept.
    pub cells: Cells,
}

/// Returns whether a string may be enriched text: it contains `]` and the opening of a slot, or its first `]` is followed by a digit.
pub(super) fn may_be_enriched(text: &str, encoding: Encoding) -> bool {
    let has = |opened: &[u8]| memmem::find(text.as_bytes(), opened).is_some();
    let behind = memmem::find(text.as_bytes(), b"]").and_then(|at| text.as_bytes().get(at + 1));
    let is_opened = |open: &str| !open.is_empty() && has(format!("]{open}").as_bytes());
    let is_number = |byte: &u8| byte.is_ascii_digit() || (*byte == b'-' && encoding.open().is_empty());
    is_opened("<") || is_opened(encoding.open()) || behind.is_some_and(is_number)
}

impl<'t> RowText<'t> {
    /// Returns a text alone.
    pub(super) fn alone(text: &'t str) -> Self {
        RowText { known: vec![Cow::Borrowed(text)], ..RowText::default() }
    }

    /// Returns the conformer of the text in the frame and encoding that are asked for.
    ///
    /// # Errors
    /// If no field parses, or the row contradicts the user.
    pub(super) fn conformer(&self, options: &ReadOptions) -> Result<Conformer, RowError> {
        let ReadOptions { frame, reading, .. } = *options;
        if frame == Frame::Keep {
            return self.parsed(reading);
        }
        let (mut conformer, own) = self.as_written(reading)?;
        frame::turn(&mut conformer, frame, (own, reading.encoding))?;
        reading.keep(&conformer.coordinates)?;
        Ok(conformer)
    }

    /// Returns the conformer with the values of its text, before conversion to the requested encoding: if coordinates are rotated and
    /// then rounded to bins, they carry the rounding error of the bins only once.
    fn as_written(&self, reading: Reading) -> Result<(Conformer, Encoding), RowError> {
        let read = |encoding, texts| {
            let conformer = self.parsed(Reading { encoding, texts, ..reading })?;
            Ok((conformer, encoding))
        };
        let own = reading.texts.unwrap_or(reading.encoding);
        if own.is_decimal() || reading.texts.is_some() {
            return read(own, reading.texts);
        }
        // A text that does not parse in the requested bins may be written in decimals, or state its own encoding.
        let decimals = Encoding::decimal(TrailingZeros::Removed, Precision::MOST);
        read(own, Some(own)).or_else(|problem| {
            read(decimals, None).map_err(|other| match problem {
                // Nobody else named an encoding for the texts.
                RowError::Contradiction { .. } => other,
                RowError::Bad(reason) => RowError::Bad(reason),
            })
        })
    }

    fn parsed(&self, reading: Reading) -> Result<Conformer, RowError> {
        let reading = match &self.encoding {
            Some(stated) => as_stated(Encoding::stated(stated, Some(reading.encoding))?, reading)?,
            None => reading,
        };
        let own = reading.texts.unwrap_or(reading.encoding);
        let mut others = self.others.iter().filter(|(_, text)| may_be_enriched(text, own)).peekable();
        // Prose in one of the known fields does not hide a text in another one. But if the first text among them is broken, a text of
        // another field is not what the row is for.
        let enriched = self.known.iter().find(|text| may_be_enriched(text, own));
        if let Some(text) = enriched.or_else(|| self.known.first().filter(|_| others.peek().is_none())) {
            return Ok(self.conformer_of(text, reading)?);
        }
        let mut reason = None;
        for (field, text) in others {
            match self.conformer_of(text, reading) {
                Ok(conformer) => return Ok(conformer),
                // The reason of the first field is reported; fields keep the order of the row.
                Err(problem) => _ = reason.get_or_insert_with(|| format!("field {field:?}: {problem}")),
            }
        }
        Err(reason.unwrap_or_else(|| "no field contains enriched SMILES".to_owned()).into())
    }

    fn conformer_of(&self, text: &str, reading: Reading) -> Result<Conformer, String> {
        let conformer = plain::conformer(text, self.name.as_deref(), reading)?;
        Ok(Conformer { pool: self.pool.clone(), id: self.id.clone(), ..conformer })
    }
}

/// Returns how a row is read that states its encoding.
///
/// # Errors
/// If the user names another encoding for the texts, or the row has more decimals than are read and nobody asked to cut them.
fn as_stated(own: Encoding, reading: Reading) -> Result<Reading, RowError> {
    // Bins of different widths look the same in text, so the user and the row cannot both be followed.
    if let Some(wanted) = reading.texts.filter(|wanted| *wanted != own) {
        return Err(RowError::Contradiction { stated: own, wanted });
    }
    let (has, most) = (own.precision(), reading.encoding.precision());
    if own.is_decimal() && reading.encoding.is_decimal() && has > most && !reading.cut {
        return Err(format!("it is written as {own}, with more than {} decimals", most.in_words()).into());
    }
    Ok(Reading { texts: Some(own), ..reading })
}

/// The place of a row in its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowLine<'f> {
    /// The name of the file.
    pub file: &'f str,
    /// The number of the row's first line, from 1.
    pub line: u64,
    /// The row as it is, with its line end.
    pub bytes: &'f [u8],
}

impl RowLine<'_> {
    fn skipped(self, place: &str, reason: String) -> SkippedRecord {
        let behind = if place.is_empty() { String::new() } else { format!(", {place}") };
        SkippedRecord { file: self.file.to_owned(), record: format!("line {}{behind}", self.line), reason }
    }
}

/// Adds to a batch what a row of a file gives: its conformers, and why other texts of it are none. `texts` is `None` for a row that
/// is left out, and an error for one without a text.
///
/// # Errors
/// If the row contradicts the encoding that the user names for the texts.
pub(super) fn take_row(
    batch: &mut Batch,
    texts: Result<Option<Vec<RowText<'_>>>, String>,
    at: RowLine<'_>,
    options: &ReadOptions,
) -> Result<(), Error> {
    let texts = match texts {
        Err(reason) => {
            batch.skipped.push(at.skipped("", reason));
            return Ok(());
        }
        Ok(None) => {
            batch.left_out += 1;
            return Ok(());
        }
        Ok(Some(texts)) => texts,
    };
    let before = batch.conformers.len();
    for text in texts {
        match text.conformer(options) {
            Ok(conformer) => {
                push_sharing(&mut batch.conformers, conformer);
                batch.lines.push(at.line);
                if !options.needs.columns.is_empty() {
                    batch.cells.push(text.cells);
                }
            }
            Err(RowError::Bad(reason)) => batch.skipped.push(at.skipped(&text.place, reason)),
            Err(RowError::Contradiction { stated, wanted }) => {
                let place = format!("{}: line {}", at.file, at.line);
                let problem = format!("states that it is written as {stated}, not as {wanted}");
                let remedy = "name no encoding for the texts, or give texts that are written so";
                return Err(Error::input(place, problem, remedy));
            }
        }
    }
    let read = batch.conformers.len() - before;
    if options.needs.bytes_for.is_some() && read > 0 {
        batch.rows.push(at.bytes, read);
    }
    Ok(())
}

/// Adds a conformer. Consecutive conformers of one molecule share its strings.
fn push_sharing(conformers: &mut Vec<Conformer>, mut conformer: Conformer) {
    if let Some(last) = conformers.last() {
        if last.molecule == conformer.molecule {
            conformer.molecule = last.molecule.clone();
        }
        if last.skeleton == conformer.skeleton {
            conformer.skeleton = last.skeleton.clone();
        }
    }
    conformers.push(conformer);
}
