//! Reads generated text: 3DMolGen's smoke reports, JSON Lines and plain text, each also gzipped. Formats are detected by content.
//!
//! | content | samples |
//! | --- | --- |
//! | one JSON object with `passes` or `failures` | a smoke report: each entry of both, or each of its `all_generations` |
//! | one JSON array of objects | each entry |
//! | one JSON object a line | each line |
//! | lines that hold enriched text or its tags | each line |
//!
//! The text of an object is its `decoded_text`, `text`, `completion`, `generated_text`, `content`, `embedded_smiles` or
//! `embedded_smiles_stripped`; the last two hold only the text between the conformer tags. Its `encoding` states how they are
//! written; of a row with both, a stripped encoding is that of the second. Its prompt is `prompt_smiles`, `smiles`
//! or `canonical_smiles`, or else the text between the SMILES tags of its `prompt`, its `custom_id` or its text.
//!
//! Several texts of one prompt are a list of texts or objects: `all_generations`, `choices` (OpenAI's interface) or `outputs`
//! (vLLM). A line of an OpenAI batch holds this list below `response` and `body`. In a chat answer, the text is below `message`.

use std::io::{self as stdio, BufRead, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny};

use super::document::{Report, rows_of};
use super::records::{FULL, Reader};
pub use super::records::{Listed, Record, SmokeHead};
use crate::corpus::{MAX_LINE_BYTES, Skipped};
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result};
use drift_core::io::{self, BoundedLines, Folded};
use drift_core::job::{InputHash, Job};

/// The size limit of a smoke report or array, in bytes, decompressed: these are read as a whole. Files of lines have no limit.
pub const MAX_FILE_BYTES: u64 = 1 << 29;

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecords {
    /// The name, size and hash of the file.
    pub input: InputHash,
    /// The usable records, in order.
    pub records: Vec<Record>,
    /// The number of other records.
    pub skipped: u64,
    /// The first of these.
    pub skipped_records: Vec<Skipped>,
    /// The figures that a smoke report states.
    pub head: Option<SmokeHead>,
}

/// Reads a file whose texts should be in the encoding `asked`, if that is known. Records without a text, or with a prompt that is not a SMILES, are skipped and listed.
///
/// # Errors
/// If the file cannot be read, is damaged, contains no text or more than fits into memory, or the job was cancelled; also if it is
/// a single document larger than [`MAX_FILE_BYTES`].
pub fn read(path: &Path, asked: Option<Encoding>, job: &Job) -> Result<FileRecords> {
    let fail = |error: stdio::Error| job.check().err().unwrap_or_else(|| Error::io(path, error));
    let mut opened = io::open(path, job);
    let mut file = Reader::new(path.display().to_string(), asked);
    let mut begun = beginning(&mut opened.reader).map_err(fail)?;
    // A document is read as a whole, so its size is limited. In a file of lines, each line is.
    if Kind::of(&begun) != Kind::Lines {
        let more = (MAX_FILE_BYTES + 1).saturating_sub(begun.len() as u64);
        opened.reader.by_ref().take(more).read_to_end(&mut begun).map_err(fail)?;
        if begun.len() as u64 > MAX_FILE_BYTES {
            return Err(io::too_large(path, MAX_FILE_BYTES));
        }
    }
    if !document(&mut file, content(&begun))? {
        let mut lines = BoundedLines::new(begun.chain(&mut opened.reader), MAX_LINE_BYTES);
        while let Some(line) = lines.next_line().map_err(fail)? {
            job.check()?;
            file.line(line);
            if file.is_full() {
                return Err(Error::input(&file.name, FULL, "split the file"));
            }
        }
    }
    let source = opened.finish(io::file_name(path)).map_err(fail)?;
    if file.records.is_empty() {
        return Err(file.empty());
    }
    let Reader { records, skipped, skipped_records, head, .. } = file;
    Ok(FileRecords { input: source, records, skipped, skipped_records, head })
}

/// The bytes behind a byte-order mark.
fn content(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Enough of a file to detect its format: its first non-blank line, and the text behind a lone `[`. It is not much longer than the
/// longest line.
fn beginning(reader: &mut impl BufRead) -> stdio::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let available = reader.fill_buf()?;
        let n = available.len();
        bytes.extend_from_slice(available);
        reader.consume(n);
        let start = content(&bytes).trim_ascii_start();
        let tells = match start.split_first() {
            Some((b'[', behind)) => !behind.trim_ascii_start().is_empty(),
            Some(_) => start.contains(&b'\n'),
            None => false,
        };
        if n == 0 || tells || bytes.len() > MAX_LINE_BYTES {
            return Ok(bytes);
        }
    }
}

/// The apparent format of a file, judged by its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An array of objects.
    Array,
    /// A smoke report.
    Report,
    /// An object that continues behind its first line, or a broken record among others.
    Object,
    /// Lines.
    Lines,
}

/// The fields that only a smoke report has.
#[derive(Deserialize)]
struct Lists {
    passes: Option<IgnoredAny>,
    failures: Option<IgnoredAny>,
}

impl Kind {
    fn of(bytes: &[u8]) -> Self {
        let start = content(bytes).trim_ascii_start();
        match start.first() {
            Some(b'[') if start[1..].trim_ascii_start().first() == Some(&b'{') => Kind::Array,
            Some(b'{') => match serde_json::from_slice::<Lists>(first_line(start)) {
                Ok(lists) if lists.passes.is_some() || lists.failures.is_some() => Kind::Report,
                Ok(_) => Kind::Lines,
                Err(_) => Kind::Object,
            },
            _ => Kind::Lines,
        }
    }
}

fn first_line(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == b'\n').next().unwrap_or_default()
}

/// Reads one JSON document; `false` if the bytes are lines instead.
fn document(file: &mut Reader, bytes: &[u8]) -> Result<bool> {
    let start = bytes.trim_ascii_start();
    let name = file.name.clone();
    let refuse = |e: serde_json::Error| match e.to_string() {
        text if text.starts_with(FULL) => Error::input(&name, FULL, "split the file"),
        text => Error::input(&name, format!("not JSON: {text}"), "check that the file is complete"),
    };
    let kind = match Kind::of(bytes) {
        Kind::Object => match serde_json::from_slice::<IgnoredAny>(start) {
            Ok(_) => Kind::Report,
            // A lone brace on its line begins a document, so this one is broken. Otherwise it is a broken line among others.
            Err(error) if first_line(start).trim_ascii() == b"{" => return Err(refuse(error)),
            Err(_) => Kind::Lines,
        },
        kind => kind,
    };
    let mut json = serde_json::Deserializer::from_slice(start);
    match kind {
        Kind::Lines => return Ok(false),
        Kind::Array => drop(Folded(rows_of(file, "record")).deserialize(&mut json).map_err(refuse)?),
        Kind::Report | Kind::Object => {
            file.head = Some(Folded(Report(file)).deserialize(&mut json).map_err(refuse)?);
            // Passes come first, wherever they are in the file.
            file.records.sort_by_key(|record| record.listed.is_none_or(|listed| !listed.in_passes));
        }
    }
    json.end().map_err(refuse)?;
    Ok(true)
}
