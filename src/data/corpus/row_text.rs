//! The texts of a row, whatever the format of rows, and the conformers that they become.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;
use serde::Deserialize;

use super::{Batch, Conformer, Frame, IsomerPool, ReadOptions, Skipped, frame, plain};
use drift_core::encoding::{Encoding, Precision, Reading, TrailingZeros};

/// One text of a row: a conformer that is not parsed yet.
#[derive(Debug, Default)]
pub(super) struct RowText<'t> {
    /// The fields that may hold the text, with their names. The first that parses is taken.
    pub candidates: Vec<(Cow<'t, str>, Cow<'t, str>)>,
    /// The SMILES of the molecule, if the row gives one.
    pub name: Option<Cow<'t, str>>,
    /// How the text is encoded, if the row says so: a name, or an object of format `drift.encoding/1`.
    pub encoding: Option<serde_json::Value>,
    /// The isomers that the row pools.
    pub pool: Option<Arc<IsomerPool>>,
    /// Its place in the row; empty for the only text of a row.
    pub place: String,
}

/// Whether a string may be enriched text of some encoding: it contains `]<`, or its first `]` is followed by a digit.
pub(super) fn may_be_enriched(text: &str) -> bool {
    memmem::find(text.as_bytes(), b"]<").is_some()
        || memmem::find(text.as_bytes(), b"]")
            .is_some_and(|at| text.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit))
}

impl<'t> RowText<'t> {
    /// A text alone.
    pub(super) fn alone(text: &'t str) -> Self {
        RowText { candidates: vec![(Cow::Borrowed(""), Cow::Borrowed(text))], ..RowText::default() }
    }

    /// The conformer of the text in the frame and encoding that are asked for.
    ///
    /// # Errors
    /// A reason: no candidate parses.
    pub(super) fn conformer(&self, options: &ReadOptions) -> Result<Conformer, String> {
        let ReadOptions { frame, reading, .. } = *options;
        if frame == Frame::Keep {
            return self.parsed(reading);
        }
        let (mut conformer, own) = self.as_written(reading)?;
        frame::turn(&mut conformer, frame, (own, reading.encoding))?;
        reading.keep(&conformer.coordinates)?;
        Ok(conformer)
    }

    /// The conformer with the values of its text, before conversion to the requested encoding: if coordinates are rotated and then
    /// rounded to bins, they carry the rounding error of the bins only once.
    fn as_written(&self, reading: Reading) -> Result<(Conformer, Encoding), String> {
        let read = |encoding, texts| {
            let conformer = self.parsed(Reading { encoding, texts, ..reading })?;
            Ok((conformer, encoding))
        };
        let own = reading.texts.unwrap_or(reading.encoding);
        if own.is_decimal() || reading.texts.is_some() {
            return read(own, reading.texts);
        }
        // A text that does not parse in the requested bins may be written in decimals.
        let decimals = Encoding::decimal(TrailingZeros::Removed, Precision::MOST);
        read(own, Some(own)).or_else(|reason| read(decimals, None).map_err(|_: String| reason))
    }

    fn parsed(&self, reading: Reading) -> Result<Conformer, String> {
        let reading = match &self.encoding {
            Some(said) => {
                let own = told(said, reading)?;
                // Bins of different widths look the same in text, so a row that contradicts the requested encoding is refused.
                if let Some(wanted) = reading.texts.filter(|wanted| *wanted != own) {
                    return Err(format!("it says that it is written as {own}, not as {wanted}"));
                }
                Reading { texts: Some(own), ..reading }
            }
            None => reading,
        };
        let mut reason = None;
        for (field, text) in &self.candidates {
            match plain::conformer(text, self.name.as_deref(), reading) {
                Ok(conformer) => return Ok(Conformer { pool: self.pool.clone(), ..conformer }),
                // The reason of the first field is reported; fields keep the order of the row.
                Err(problem) if field.is_empty() => _ = reason.get_or_insert(problem),
                Err(problem) => _ = reason.get_or_insert_with(|| format!("field {field:?}: {problem}")),
            }
        }
        Err(reason.unwrap_or_else(|| "no field contains enriched SMILES".to_owned()))
    }
}

/// The encoding that a row states for its text. The name of the requested encoding selects that encoding; any other name must be
/// one of drift's own.
fn told(said: &serde_json::Value, reading: Reading) -> Result<Encoding, String> {
    if said.as_str() == Some(reading.encoding.name()) {
        return Ok(reading.encoding);
    }
    Encoding::deserialize(said).map_err(|e| format!("field \"encoding\": {e}"))
}

/// Adds to a batch what a row of a file gives: its conformers, and why other texts of it are none. `texts` is `None` for a row that
/// is left out, and an error for one without a text.
pub(super) fn take_row(
    batch: &mut Batch,
    texts: Result<Option<Vec<RowText<'_>>>, String>,
    (file, line): (&str, u64),
    options: &ReadOptions,
) {
    let skip = |batch: &mut Batch, place: &str, reason: String| {
        let record = if place.is_empty() { format!("line {line}") } else { format!("line {line}, {place}") };
        batch.skipped.push(Skipped { file: file.to_owned(), record, reason });
    };
    match texts {
        Err(reason) => skip(batch, "", reason),
        Ok(None) => batch.left_out += 1,
        Ok(Some(texts)) => {
            for text in texts {
                match text.conformer(options) {
                    Ok(conformer) => {
                        push_sharing(&mut batch.conformers, conformer);
                        batch.lines.push(line);
                    }
                    Err(reason) => skip(batch, &text.place, reason),
                }
            }
        }
    }
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
