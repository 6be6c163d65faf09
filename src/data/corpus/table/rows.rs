//! Finds the rows of a table, and splits them.

use std::borrow::Cow;
use std::io::{self, BufRead};

use memchr::{memchr, memchr_iter, memchr2};

use super::header::Header;
use super::row_fields::Fields;
use crate::corpus::lines::{MAX_LINE_BYTES, skip_to_line_end, too_long};

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
    /// Returns whether this is an empty line, which is no row.
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

impl RowBlock {
    /// Returns the bytes of a row with its line end.
    pub(super) fn with_line_end(&self, place: &RowPlace) -> &[u8] {
        let behind = &self.bytes[place.end..];
        let end =
            [&b"\r\n"[..], b"\n"].into_iter().find(|end| behind.starts_with(end)).map_or(0, <[u8]>::len);
        &self.bytes[place.start..place.end + end]
    }
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
    columns: usize,
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
    /// Starts behind the header.
    pub(crate) fn behind_header(reader: R, header: &Header) -> Self {
        let (delimiter, columns) = (header.delimiter, header.columns.len());
        RowBlocks { reader, delimiter, columns, buffer: Vec::new(), line: header.number + 1, at_end: false }
    }

    /// Returns the next rows; `None` at the end.
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

    /// Returns the end of a row whose quotes are closed. Two lines that were cut within quotes may look like a row, but not of all
    /// columns.
    fn whole(&self, start: usize, end: usize, lines: u64) -> RowEnd {
        let row = &self.buffer[start..end];
        let row = row.strip_suffix(b"\r").unwrap_or(row);
        match lines > 0 && Fields::new(row, self.delimiter).count() != self.columns {
            true => RowEnd::Broken,
            false => RowEnd::At(end),
        }
    }

    fn first_line_end(&self, start: usize) -> usize {
        memchr(b'\n', &self.buffer[start..]).map_or(self.buffer.len(), |at| start + at)
    }

    /// Looks for the end of the row that begins at `start`.
    fn row_end(&self, start: usize) -> RowEnd {
        let bytes = &self.buffer[..];
        let (mut at, mut in_quotes, mut lines) = (start, false, 0u64);
        while let Some(found) = memchr2(b'"', b'\n', &bytes[at..]) {
            let found_at = at + found;
            at = found_at + 1;
            match (bytes[found_at], in_quotes) {
                (b'\n', false) => return self.whole(start, found_at, lines),
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
            () => self.whole(start, bytes.len(), lines),
        }
    }
}

/// Returns the fields of a row, as many as the header has.
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
