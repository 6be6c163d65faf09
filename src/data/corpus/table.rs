//! Tables: CSV and TSV with a header, fields quoted as in RFC 4180, any order of columns.
//!
//! The rows are found by one pass over quotes and line ends, and their fields are split in parallel. A quote that is never closed
//! makes only its own line a broken row: a row that was cut in the middle must not swallow the rows behind it, as it does in readers
//! that follow RFC 4180 to the letter. So such a line is given up where the quotes that follow contradict it.

use std::borrow::Cow;
use std::io::{self, BufRead};
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memchr2};

use super::damage::read_error;
use super::fields::{ENCODING_FIELD, LABEL_FIELD, PREDICTION_FIELD, SMILES_FIELDS, TEXT_FIELDS};
use super::lines::{MAX_LINE_BYTES, skip_to_line_end, too_long};
use super::plain::begins_like_text;
use super::queue::Queue;
use super::row_filter::RowFilter;
use super::row_text::{RowLine, RowText, may_be_enriched, take_row};
use super::{Batch, Context, Emit, ReadOptions, Source};
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result, excerpt, shortened_end};

/// The characters that may separate the fields of a table.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// The most columns that a message names.
const COLUMNS_SHOWN: usize = 20;

/// The header of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub delimiter: u8,
    pub columns: Vec<String>,
}

/// What the first line of a file says of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FirstLine {
    /// The header of a table of texts.
    Header(Header),
    /// A header without a column of texts.
    NoText(Header),
    /// A row of a table without a header: one of its fields holds a text.
    Row,
    /// Something else.
    Other,
}

impl FirstLine {
    /// Looks at the first line of a file, without its byte-order mark.
    pub(crate) fn of(line: &[u8]) -> Self {
        let line = line.trim_ascii_end();
        if line.is_empty() || matches!(line[0], b'{' | b'[' | b'<') || begins_like_text(line) {
            return FirstLine::Other;
        }
        let headers = DELIMITERS.map(|delimiter| Header::split(line, delimiter)).into_iter().flatten();
        let mut headers: Vec<Header> = headers.collect();
        if let Some(with_text) = headers.iter().position(|header| header.text_columns().next().is_some()) {
            let mut header = headers.swap_remove(with_text);
            if header.columns.len() == 1 {
                // Nothing shows the delimiter, and the commas of a text are none.
                header.delimiter = b'\t';
            }
            return FirstLine::Header(header);
        }
        let widest = headers.into_iter().rev().max_by_key(|header| header.columns.len());
        let Some(widest) = widest.filter(|header| header.columns.len() > 1) else { return FirstLine::Other };
        let holds_text =
            |field: &String| may_be_enriched(field, Encoding::FIXED) && begins_like_text(field.as_bytes());
        let in_fields = DELIMITERS
            .iter()
            .filter_map(|delimiter| Header::split(line, *delimiter))
            .any(|row| row.columns.len() > 1 && row.columns.iter().any(holds_text));
        match () {
            () if in_fields => FirstLine::Row,
            () if widest.columns.iter().all(|name| is_name(name)) => FirstLine::NoText(widest),
            () => FirstLine::Other,
        }
    }
}

/// Whether a field of a first line may be the name of a column: short, and not a number.
fn is_name(field: &str) -> bool {
    field.len() <= 64 && !field.contains("]<") && field.trim().parse::<f64>().is_err()
}

impl Header {
    /// The fields of a line; `None` if they are broken.
    fn split(line: &[u8], delimiter: u8) -> Option<Self> {
        let columns = Fields::new(line, delimiter)
            .map(|field| Some(std::str::from_utf8(&field.ok()?).ok()?.trim().to_owned()));
        Some(Header { delimiter, columns: columns.collect::<Option<Vec<_>>>()? })
    }

    /// The position of a column.
    fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The columns that may hold texts, best first.
    fn text_columns(&self) -> impl Iterator<Item = usize> {
        TEXT_FIELDS.into_iter().filter_map(|name| self.place(name))
    }

    /// The columns as a message shows them.
    pub(crate) fn shown(&self) -> String {
        let names =
            self.columns.iter().take(COLUMNS_SHOWN).map(|name| format!("`{}`", shortened_end(name, 40)));
        let more = if self.columns.len() > COLUMNS_SHOWN { ", …" } else { "" };
        format!("{}{more}", names.collect::<Vec<_>>().join(", "))
    }

    /// The positions of the columns that a filter asks for.
    ///
    /// # Errors
    /// If the table lacks one of them.
    pub(crate) fn columns_of(&self, filter: &RowFilter, file: &str) -> Result<Vec<usize>> {
        let place = |name: &str| {
            self.place(name).ok_or_else(|| {
                let problem = format!("has no column `{name}`, by which rows are picked");
                Error::input(file, problem, format!("its columns are {}", self.shown()))
            })
        };
        filter.columns().map(place).collect()
    }
}

/// What is wrong with a table that has no texts, or no header, and what to do.
pub(crate) fn problem(first: &FirstLine) -> Option<(String, String)> {
    match first {
        FirstLine::NoText(header) => {
            let problem = format!("is a table without a column of texts; its columns are {}", header.shown());
            let remedy = format!(
                "name the column of the texts `enriched_text` (also read: {})",
                TEXT_FIELDS.join(", ")
            );
            Some((problem, remedy))
        }
        FirstLine::Row => {
            let problem = "is a table without a header: its first line holds a text".to_owned();
            let remedy =
                "add a first line with the names of its columns, such as `name,enriched_text`".to_owned();
            Some((problem, remedy))
        }
        FirstLine::Header(_) | FirstLine::Other => None,
    }
}

/// The fields of a row, without their quotes. A field is an error if its quotes are broken.
pub(crate) struct Fields<'r> {
    /// `None` behind the last field.
    rest: Option<&'r [u8]>,
    delimiter: u8,
}

impl<'r> Fields<'r> {
    /// The fields of a row without its line end.
    pub(crate) fn new(row: &'r [u8], delimiter: u8) -> Self {
        Fields { rest: Some(row), delimiter }
    }

    /// A field whose text begins behind its first quote.
    fn quoted(&mut self, rest: &'r [u8]) -> Result<Cow<'r, [u8]>, String> {
        let mut from = 0;
        let mut has_quotes = false;
        let end = loop {
            let Some(at) = memchr(b'"', &rest[from..]) else {
                return Err("a quote is not closed".to_owned());
            };
            let at = from + at;
            if rest.get(at + 1) != Some(&b'"') {
                break at;
            }
            has_quotes = true;
            from = at + 2;
        };
        self.rest = match rest[end + 1..].split_first() {
            None => None,
            Some((byte, behind)) if *byte == self.delimiter => Some(behind),
            Some(_) => {
                return Err(format!("{} stands behind a closing quote", excerpt(&rest[end + 1..])));
            }
        };
        let inside = &rest[..end];
        if !has_quotes {
            return Ok(Cow::Borrowed(inside));
        }
        let mut field = Vec::with_capacity(inside.len());
        let mut bytes = inside.iter();
        while let Some(byte) = bytes.next() {
            field.push(*byte);
            if *byte == b'"' {
                // The second of two quotes.
                bytes.next();
            }
        }
        Ok(Cow::Owned(field))
    }
}

impl<'r> Iterator for Fields<'r> {
    type Item = Result<Cow<'r, [u8]>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        if let Some(inside) = rest.strip_prefix(b"\"") {
            return Some(self.quoted(inside));
        }
        let end = memchr(self.delimiter, rest);
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(Ok(Cow::Borrowed(&rest[..end.unwrap_or(rest.len())])))
    }
}

/// Where a row of a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowPlace {
    /// The bytes of the row in its block, without the line end.
    pub start: usize,
    pub end: usize,
    /// The number of its first line, from 1.
    pub line: u64,
    pub state: RowState,
}

impl RowPlace {
    /// Whether this is an empty line, which is no row.
    pub(crate) fn is_blank(&self) -> bool {
        self.start == self.end && self.state == RowState::Whole
    }
}

/// Whether a row can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowState {
    Whole,
    /// The quotes of the line are broken; the next row begins at the next line.
    Broken,
    /// Longer than [`MAX_LINE_BYTES`]; the row has no bytes.
    TooLong,
}

/// Rows that were read together.
#[derive(Debug, Default)]
pub(crate) struct RowBlock {
    pub bytes: Vec<u8>,
    pub rows: Vec<RowPlace>,
}

const BLOCK_BYTES: usize = 1 << 20;
/// Bounds the number of skipped records that one block can produce.
const BLOCK_ROWS: usize = 1 << 14;

/// The longest row of several lines, in bytes. A line with a broken quote is given up after so many bytes at the latest.
const MAX_SPAN_BYTES: usize = 1 << 20;

/// Cuts a stream into blocks of whole rows.
pub(crate) struct RowBlocks<R> {
    reader: R,
    delimiter: u8,
    buffer: Vec<u8>,
    line: u64,
    at_end: bool,
}

/// How far the search for the end of a row came.
enum RowEnd {
    /// The row ends before the line end at this position.
    At(usize),
    /// The quotes of its first line are broken.
    Broken,
    /// It needs more bytes.
    More,
}

impl<R: BufRead> RowBlocks<R> {
    /// Starts at the first line of a stream.
    #[cfg(test)]
    fn new(reader: R, delimiter: u8) -> Self {
        RowBlocks { reader, delimiter, buffer: Vec::new(), line: 1, at_end: false }
    }

    /// Starts behind the header, at the second line of a file.
    pub(crate) fn behind_header(reader: R, delimiter: u8) -> Self {
        RowBlocks { reader, delimiter, buffer: Vec::new(), line: 2, at_end: false }
    }

    /// The next rows; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<RowBlock>> {
        let mut block = RowBlock::default();
        let mut start = 0;
        while start < BLOCK_BYTES && block.rows.len() < BLOCK_ROWS {
            if start == self.buffer.len() && !self.fill()? {
                break;
            }
            let end = match self.row_end(start) {
                RowEnd::More if self.buffer.len() - start > MAX_LINE_BYTES => {
                    block.rows.push(self.place(start, start, RowState::TooLong));
                    self.buffer.truncate(start);
                    skip_to_line_end(&mut self.reader)?;
                    self.line += 1;
                    continue;
                }
                RowEnd::More => {
                    self.fill()?;
                    continue;
                }
                RowEnd::At(end) => {
                    block.rows.push(self.place(start, end, RowState::Whole));
                    end
                }
                RowEnd::Broken => {
                    let end = self.first_line_end(start);
                    block.rows.push(self.place(start, end, RowState::Broken));
                    end
                }
            };
            self.line += 1 + memchr_iter(b'\n', &self.buffer[start..end]).count() as u64;
            start = self.buffer.len().min(end + 1);
        }
        let rest = self.buffer.split_off(start);
        block.bytes = std::mem::replace(&mut self.buffer, rest);
        Ok((!block.rows.is_empty()).then_some(block))
    }

    fn place(&self, start: usize, end: usize, state: RowState) -> RowPlace {
        let end = end - usize::from(self.buffer[start..end].ends_with(b"\r"));
        RowPlace { start, end, line: self.line, state }
    }

    /// Reads more bytes; `false` at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        let available = self.reader.fill_buf()?;
        let n = available.len().min(BLOCK_BYTES);
        self.buffer.extend_from_slice(&available[..n]);
        self.reader.consume(n);
        self.at_end = n == 0;
        Ok(n > 0)
    }

    fn first_line_end(&self, start: usize) -> usize {
        memchr(b'\n', &self.buffer[start..]).map_or(self.buffer.len(), |at| start + at)
    }

    /// Looks for the end of the row that begins at `start`.
    fn row_end(&self, start: usize) -> RowEnd {
        let bytes = &self.buffer[..];
        let (mut at, mut in_quotes, mut lines) = (start, false, 0);
        while let Some(found) = memchr2(b'"', b'\n', &bytes[at..]) {
            let found_at = at + found;
            at = found_at + 1;
            match (bytes[found_at], in_quotes) {
                (b'\n', false) => return RowEnd::At(found_at),
                (b'\n', true) => {
                    lines += 1;
                    if at - start > MAX_SPAN_BYTES {
                        return RowEnd::Broken;
                    }
                }
                // A quote within a field without quotes is a character like any other.
                (_, false) => in_quotes = found_at == start || bytes[found_at - 1] == self.delimiter,
                (_, true) => match bytes.get(at) {
                    Some(b'"') => at += 1,
                    Some(b'\n' | b'\r') => in_quotes = false,
                    Some(byte) if *byte == self.delimiter => in_quotes = false,
                    Some(_) => return RowEnd::Broken,
                    None if self.at_end => in_quotes = false,
                    None => return RowEnd::More,
                },
            }
        }
        match () {
            () if lines > 0 && bytes.len() - start > MAX_SPAN_BYTES => RowEnd::Broken,
            () if !self.at_end => RowEnd::More,
            () if in_quotes => RowEnd::Broken,
            () => RowEnd::At(bytes.len()),
        }
    }
}

/// Reads a table of texts.
///
/// # Errors
/// If the stream is damaged, a column of the filter is missing, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut Emit<'_>) -> Result<()> {
    let file: Arc<str> = source.name.into();
    let header = read_header(source.reader, &file)?;
    let picked = header.columns_of(&context.options.rows, &file)?;
    let table = Arc::new(Table { header, picked, options: context.options.clone(), file: file.clone() });
    let mut blocks = RowBlocks::behind_header(source.reader, table.header.delimiter);
    let mut queue = Queue::default();
    while let Some(block) = blocks.next().map_err(|e| read_error(&file, e))? {
        context.job.check()?;
        let table = table.clone();
        queue.push(block.bytes.len(), move || table.batch(&block), emit)?;
    }
    queue.finish(emit)
}

/// Reads the first line of a table, which [`FirstLine`] has found to be a header.
///
/// # Errors
/// If the stream is damaged, or its first line is no header.
pub(crate) fn read_header(reader: &mut dyn BufRead, file: &str) -> Result<Header> {
    let mut line = Vec::new();
    loop {
        let available = reader.fill_buf().map_err(|e| read_error(file, e))?;
        let end = memchr(b'\n', available);
        let n = end.map_or(available.len(), |end| end + 1);
        line.extend_from_slice(&available[..n]);
        reader.consume(n);
        if n == 0 || end.is_some() || line.len() > MAX_LINE_BYTES {
            break;
        }
    }
    match FirstLine::of(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line)) {
        FirstLine::Header(header) => Ok(header),
        other => {
            let (problem, remedy) =
                problem(&other).unwrap_or_else(|| ("its header changed".into(), String::new()));
            Err(Error::input(file, problem, remedy))
        }
    }
}

/// What the tasks of a table share.
struct Table {
    header: Header,
    /// The columns of the filter.
    picked: Vec<usize>,
    options: ReadOptions,
    file: Arc<str>,
}

impl Table {
    fn batch(&self, block: &RowBlock) -> Result<Batch> {
        let mut batch = Batch::default();
        for place in &block.rows {
            let row = &block.bytes[place.start..place.end];
            if place.is_blank() {
                continue;
            }
            let fields = whole_fields(row, place.state, &self.header);
            let texts = fields.as_ref().map_err(Clone::clone).and_then(|fields| self.texts(fields));
            take_row(&mut batch, texts, RowLine { file: &self.file, line: place.line }, &self.options)?;
        }
        Ok(batch)
    }

    /// The text of a row; `None` if the row is not picked.
    fn texts<'t>(&self, fields: &'t [Cow<'_, str>]) -> Result<Option<Vec<RowText<'t>>>, String> {
        if !self.options.rows.picks(self.picked.iter().map(|at| fields[*at].as_bytes())) {
            return Ok(None);
        }
        let field =
            |name: &str| self.header.place(name).map(|at| &*fields[at]).filter(|value| !value.is_empty());
        let is_predicted = self.header.place(PREDICTION_FIELD).is_some();
        let known = TEXT_FIELDS.into_iter().filter(|name| !(is_predicted && *name == LABEL_FIELD));
        let known: Vec<_> = known.filter_map(field).map(Cow::Borrowed).collect();
        if known.is_empty() {
            return Err("its text is empty".to_owned());
        }
        let name = SMILES_FIELDS.into_iter().find_map(field).map(Cow::Borrowed);
        let encoding = field(ENCODING_FIELD).map(Into::into);
        Ok(Some(vec![RowText { known, name, encoding, ..RowText::default() }]))
    }
}

/// The fields of a row, as many as the header has.
///
/// # Errors
/// A reason: the row is too long or broken, has another number of fields, or is not UTF-8.
pub(crate) fn whole_fields<'r>(
    row: &'r [u8],
    state: RowState,
    header: &Header,
) -> Result<Vec<Cow<'r, str>>, String> {
    if state == RowState::TooLong || row.len() > MAX_LINE_BYTES {
        return Err(too_long());
    }
    let mut fields = Vec::with_capacity(header.columns.len());
    for field in Fields::new(row, header.delimiter) {
        let field = match field? {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|e| e.utf8_error()),
        };
        fields.push(
            field.map_err(|e| format!("field {}: byte {}: not UTF-8", fields.len() + 1, e.valid_up_to()))?,
        );
    }
    if state == RowState::Broken {
        return Err("the quotes of the row are broken; it may have been cut".to_owned());
    }
    let (found, wanted) = (fields.len(), header.columns.len());
    if found != wanted {
        return Err(format!("the header has {wanted} columns, the row {found}; it may have been cut"));
    }
    Ok(fields)
}

#[cfg(test)]
mod tests;
