//! Reads generated text: 3DMolGen's smoke reports and pickles, JSON Lines, tables and plain text, each also compressed by gzip or
//! zstd. Formats are detected by content.
//!
//! | content | samples |
//! | --- | --- |
//! | one JSON object with `passes` or `failures` | a smoke report: each entry of both, or each of its `all_generations` |
//! | one JSON array of objects | each entry |
//! | one JSON object a line | each line |
//! | CSV or TSV with a header that names a column of texts | each row |
//! | lines that hold enriched text or its tags | each line |
//! | a pickle of RDKit molecules | each conformer |
//!
//! The names of the fields that hold texts and prompts are in [`fields`](crate::corpus); columns have the same names. The prompt is
//! else the text between the SMILES tags of a row's `prompt`, its `custom_id` or its text. A grouped row (`isomers`) has a text for
//! each conformer of each isomer.
//!
//! The `encoding` of an object states how its texts are written; of a row with both `embedded_smiles` and `embedded_smiles_stripped`, a
//! stripped encoding is that of the second.
//!
//! Several texts of one prompt are a list of texts or objects: `all_generations`, `choices` (OpenAI's interface) or `outputs`
//! (vLLM). A line of an OpenAI batch holds this list below `response` and `body`. In a chat answer, the text is below `message`.

use std::borrow::Cow;
use std::io::{self as stdio, BufRead, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny};

use super::document::{Report, rows_of};
use super::molecules;
use super::records::{FULL, Reader, RowField};
pub use super::records::{Record, SmokeHead, SmokePosition};
use super::rows::{Read, Row};
use crate::corpus::fields::TEXT_FIELDS;
use crate::corpus::table::{self, FirstLine, Header, RowBlocks, whole_fields};
use crate::corpus::{Format, MAX_LINE_BYTES, RowFilter, SkippedRecord, is_tar, whole};
use crate::generation::TextsHeader;
use crate::parameter;
use drift_core::io::{self, BoundedLines, FoldSeed};
use drift_core::job::InputHash;
use drift_core::{Encoding, Error, Job, Result};

/// The size limit of a smoke report or array, in bytes, decompressed: these are read as a whole. Files of lines have no limit.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 29;

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRecords {
    /// The name, size and hash of the file.
    pub input: InputHash,
    /// The usable records, in order.
    pub records: Vec<Record>,
    /// The number of other records.
    pub skipped: u64,
    /// The first of these.
    pub skipped_records: Vec<SkippedRecord>,
    /// The figures that a smoke report states.
    pub head: Option<SmokeHead>,
    /// The number of rows that were not asked for.
    pub left_out: u64,
    /// What a reader of the file's shares should know.
    pub note: Option<String>,
    /// What the file's first line says of its texts, if drift wrote them.
    pub header: Option<Box<TextsHeader>>,
}

/// How files of generated text are read.
#[derive(Debug, Clone, Default)]
pub struct TextReading {
    /// Which rows of tables and JSON Lines are read.
    pub rows: RowFilter,
    /// The field that names the row of a report to which a text belongs.
    pub row_field: RowField,
    /// The encoding that the texts should have, if it is known.
    pub asked: Option<Encoding>,
}

/// Reads a file of generated text.
/// Records without a text, or with a prompt that is not a SMILES, are skipped and listed.
///
/// # Errors
/// If the file cannot be read, is damaged, contains no text or more than fits into memory, or the job was cancelled; also if it is
/// a single document larger than [`MAX_FILE_BYTES`], holds conformers in a format without text, or has no columns for the filter.
pub fn read(path: &Path, reading: &TextReading, job: &Job) -> Result<FileRecords> {
    let rows = &reading.rows;
    let fail = |error: stdio::Error| job.check().err().unwrap_or_else(|| Error::io(path, error));
    let mut opened = io::open(path, job);
    let mut file = Reader::new(path.display().to_string(), reading.asked, reading.row_field.clone());
    let begun = beginning(&mut opened.reader).map_err(fail)?;
    let first = FirstLine::of_content(content(&begun));
    let mut rest = stdio::Cursor::new(&*begun).chain(&mut opened.reader);
    match Format::from_prefix(&begun) {
        Some(Format::Table) => read_table(&mut file, &mut rest, rows, job)?,
        Some(Format::Pickle) => {
            rows.refuse(&file.name, Format::Pickle.name())?;
            let bytes = whole(&mut rest, &file.name, job)?;
            molecules::read(&bytes, &mut file, job)?;
        }
        Some(format @ (Format::Sdf | Format::Xyz | Format::Msgpack | Format::Hdf5)) => {
            return Err(no_texts(&file.name, format));
        }
        None if is_tar(&begun) => {
            return Err(Error::input(&file.name, "is a tar archive", "unpack it, and give its files"));
        }
        _ if first == FirstLine::Row => return Err(refused_table(&file.name, &first)),
        Some(Format::Jsonl | Format::Plain) | None => read_text(path, &mut file, &mut rest, rows, job)?,
    }
    let source = opened.finish(io::file_name(path)).map_err(fail)?;
    if file.records.is_empty() {
        let is_table = matches!(first, FirstLine::NoText(_));
        return Err(if is_table { refused_table(&file.name, &first) } else { file.empty() });
    }
    let Reader { records, skipped, skipped_records, head, left_out, note, header, .. } = file;
    Ok(FileRecords { input: source, records, skipped, skipped_records, head, left_out, note, header })
}

/// Reads a document, or lines.
fn read_text(
    path: &Path,
    file: &mut Reader,
    stream: &mut dyn BufRead,
    rows: &RowFilter,
    job: &Job,
) -> Result<()> {
    let fail = |error: stdio::Error| job.check().err().unwrap_or_else(|| Error::io(path, error));
    let mut begun = beginning(stream).map_err(fail)?;
    // A document is read as a whole, so its size is limited. In a file of lines, each line is.
    if Kind::of(&begun) != Kind::Lines {
        let more = (MAX_FILE_BYTES + 1).saturating_sub(begun.len() as u64);
        stream.take(more).read_to_end(&mut begun).map_err(fail)?;
        if begun.len() as u64 > MAX_FILE_BYTES {
            return Err(io::too_large(path, MAX_FILE_BYTES));
        }
    }
    if document(file, content(&begun))? {
        return rows.refuse(&file.name, "one JSON document");
    }
    let mut lines = BoundedLines::new(begun.chain(stream), MAX_LINE_BYTES);
    while let Some(line) = lines.next_line().map_err(fail)? {
        job.check()?;
        file.line(line, rows)?;
        file.check_size()?;
    }
    Ok(())
}

/// Reads the rows of a table.
fn read_table(file: &mut Reader, stream: &mut dyn BufRead, rows: &RowFilter, job: &Job) -> Result<()> {
    let name = file.name.clone();
    let header = table::read_header(stream, &name)?;
    let picked = header.columns_of(rows, &name)?;
    let mut blocks = RowBlocks::behind_header(stream, &header);
    let fail = |error: stdio::Error| job.check().err().unwrap_or_else(|| Error::io(Path::new(&name), error));
    while let Some(block) = blocks.next().map_err(fail)? {
        job.check()?;
        for place in &block.rows {
            let row = &block.bytes[place.start..place.end];
            if place.is_blank() {
                continue;
            }
            let record = format!("line {}", place.line);
            match whole_fields(row, place.state, &header) {
                Err(reason) => file.skip(record, reason),
                Ok(fields) if !rows.picks(picked.iter().map(|at| fields[*at].as_bytes())) => {
                    file.left_out += 1
                }
                Ok(fields) => {
                    let row = row_of(&header, fields, file.row_field.lp());
                    file.object(&record, None, row);
                }
            }
        }
        file.check_size()?;
    }
    Ok(())
}

/// Returns a row of a table as an object. An empty field counts as absent, unless it should hold the text.
fn row_of(header: &Header, fields: Vec<Cow<'_, str>>, lp: &str) -> Read {
    let mut row = Box::<Row>::default();
    for (at, (column, value)) in header.columns.iter().zip(fields).enumerate() {
        // Of columns with one name the first counts, as wherever tables are read.
        let is_first = header.place(column) == Some(at);
        if is_first && Row::has_field(column, lp) && (!value.is_empty() || TEXT_FIELDS.contains(&&**column)) {
            row.take(column, lp, value_of(column, value));
        }
    }
    Read::Row(row)
}

/// Returns the value of a column. Most columns hold text, even if it looks like a number.
fn value_of(column: &str, value: Cow<'_, str>) -> Read {
    let number = (column == "seconds").then(|| value.parse().ok().map(Read::Number)).flatten();
    number.unwrap_or_else(|| Read::Text(value.into_owned()))
}

/// Returns the refusal of a file of conformers that are no texts.
fn no_texts(file: &str, format: Format) -> Error {
    let problem = format!("is {}: conformers, not generated texts", format.name());
    let remedy = format!(
        "`drift mine` reads it, `drift encode` writes its texts, and {} takes it to compare texts with",
        parameter::REFERENCES
    );
    Error::input(file, problem, remedy)
}

fn refused_table(file: &str, first: &FirstLine) -> Error {
    let (problem, remedy) = table::problem(first).unwrap_or_default();
    Error::input(file, problem, remedy)
}

/// Returns the bytes behind a byte-order mark.
fn content(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Enough of a file to detect its format: its first line behind blank ones and comments, and the text behind a lone `[`. It is not much longer than the
/// longest line.
fn beginning(reader: &mut dyn BufRead) -> stdio::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let available = reader.fill_buf()?;
        let n = available.len();
        bytes.extend_from_slice(available);
        reader.consume(n);
        let start = table::behind_comments(content(&bytes)).trim_ascii_start();
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
        Kind::Array => drop(FoldSeed(rows_of(file, "record")).deserialize(&mut json).map_err(refuse)?),
        Kind::Report | Kind::Object => {
            file.head = Some(FoldSeed(Report(file)).deserialize(&mut json).map_err(refuse)?);
            // Passes come first, wherever they are in the file.
            file.records.sort_by_key(|record| record.listed.is_none_or(|listed| !listed.in_passes));
        }
    }
    json.end().map_err(refuse)?;
    Ok(true)
}
