//! Tables: CSV and TSV with a header, fields quoted as in RFC 4180, any order of columns.
//!
//! The rows are found by one pass over quotes and line ends, and their fields are split in parallel. A quote that is never closed
//! makes only its own line a broken row: a row that was cut in the middle must not swallow the rows behind it, as it does in readers
//! that follow RFC 4180 to the letter. So such a line is given up where the quotes that follow contradict it.

mod header;
mod row_fields;
mod rows;

use std::borrow::Cow;
use std::io::BufRead;
use std::sync::Arc;

use memchr::memchr;

use super::damage::read_error;
use super::fields::{ENCODING_FIELD, ID_FIELDS, LABEL_FIELD, PREDICTION_FIELD, SMILES_FIELDS, TEXT_FIELDS};
use super::lines::MAX_LINE_BYTES;
use super::queue::Queue;
use super::row_text::{RowLine, RowText, take_row};
use super::{Batch, BatchSink, Cells, Context, Format, ReadOptions, RowLayout, Source};
use drift_core::{Error, Result};
use header::is_before_header;
pub(crate) use header::{FirstLine, Header, behind_comments, problem};
pub(crate) use rows::{RowBlock, RowBlocks, whole_fields};

/// The bytes that mark a file as UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a table of texts.
///
/// # Errors
/// If the stream is damaged, a column of the filter is missing, the job was cancelled, or `emit` fails.
pub(crate) fn read(source: Source<'_>, context: Context<'_>, emit: &mut BatchSink<'_>) -> Result<()> {
    let file: Arc<str> = source.name.into();
    let header = read_header(source.reader, &file)?;
    let picked = header.columns_of(&context.options.rows, &file)?;
    let needs = context.options.needs;
    let table = Arc::new(Table {
        kept: needs.columns.iter().map(|name| header.place(name)).collect(),
        layout: needs.bytes_for.map(|_| Arc::new(RowLayout::new(Format::Table, &header.line))),
        header,
        picked,
        options: context.options.clone(),
        file: file.clone(),
    });
    let mut blocks = RowBlocks::behind_header(source.reader, &table.header);
    let mut queue = Queue::default();
    while let Some(block) = blocks.next().map_err(|e| read_error(&file, e))? {
        context.job.check()?;
        let table = table.clone();
        queue.push(block.bytes.len(), move || table.batch(&block), emit)?;
    }
    queue.finish(emit)
}

/// Reads the header of a table, which [`FirstLine`] has found to be one, and the comments before it.
///
/// # Errors
/// If the stream is damaged, or there is no header.
pub(crate) fn read_header(reader: &mut dyn BufRead, file: &str) -> Result<Header> {
    let mut line = read_line(reader, file)?;
    if line.starts_with(BYTE_ORDER_MARK) {
        line.drain(..BYTE_ORDER_MARK.len());
    }
    let mut number = 1;
    while !line.is_empty() && is_before_header(&line) {
        line = read_line(reader, file)?;
        number += 1;
    }
    match FirstLine::of(&line) {
        FirstLine::Header(header) => Ok(Header { line, number, ..header }),
        other => {
            let (problem, remedy) =
                problem(&other).unwrap_or_else(|| ("its header changed".into(), String::new()));
            Err(Error::input(file, problem, remedy))
        }
    }
}

/// Reads a line with its end; empty at the end of the stream. Of a line that is too long, only the beginning is read.
fn read_line(reader: &mut dyn BufRead, file: &str) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let available = reader.fill_buf().map_err(|e| read_error(file, e))?;
        let end = memchr(b'\n', available);
        let n = end.map_or(available.len(), |end| end + 1);
        line.extend_from_slice(&available[..n]);
        reader.consume(n);
        if n == 0 || end.is_some() || line.len() > MAX_LINE_BYTES {
            return Ok(line);
        }
    }
}

/// What the tasks of a table share.
struct Table {
    header: Header,
    /// The columns of the filter.
    picked: Vec<usize>,
    /// The columns whose values are kept; `None` for one that the table lacks.
    kept: Vec<Option<usize>>,
    /// `None` if the bytes of rows are not kept.
    layout: Option<Arc<RowLayout>>,
    options: ReadOptions,
    file: Arc<str>,
}

impl Table {
    fn batch(&self, block: &RowBlock) -> Result<Batch> {
        let mut batch = Batch::default();
        batch.rows.layout = self.layout.clone();
        for place in &block.rows {
            let row = &block.bytes[place.start..place.end];
            if place.is_blank() {
                continue;
            }
            let fields = whole_fields(row, place.state, &self.header);
            let texts = fields.as_ref().map_err(Clone::clone).and_then(|fields| self.texts(fields));
            let bytes = block.with_line_end(place);
            let at = RowLine { file: &self.file, line: place.line, bytes };
            take_row(&mut batch, texts, at, &self.options)?;
        }
        Ok(batch)
    }

    /// Returns the text of a row; `None` if the row is not picked.
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
        let id =
            ID_FIELDS.into_iter().filter(|_| self.options.smiles.required).find_map(field).map(Arc::from);
        let encoding = field(ENCODING_FIELD).map(Into::into);
        let cell = |at: &Option<usize>| at.map(|at| &*fields[at]).filter(|cell| !cell.is_empty());
        let cells: Cells = self.kept.iter().map(|at| cell(at).map(Arc::from)).collect();
        Ok(Some(vec![RowText { known, name, id, encoding, cells, ..RowText::default() }]))
    }
}

#[cfg(test)]
mod tests;
