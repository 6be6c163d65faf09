//! The header of a table, and what its absence says.

use memchr::memchr;

use super::row_fields::Fields;
use crate::corpus::fields::TEXT_FIELDS;
use crate::corpus::plain::begins_like_text;
use crate::corpus::row_filter::RowFilter;
use crate::corpus::row_text::may_be_enriched;
use drift_core::error::shortened_end;
use drift_core::{Encoding, Error, Result};

/// The characters that may separate the fields of a table.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// The most columns that a message names.
const COLUMNS_SHOWN: usize = 20;

/// The header of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub delimiter: u8,
    pub columns: Vec<String>,
    /// The line with its line end, without a byte-order mark; empty if the stream is not read yet.
    pub line: Vec<u8>,
    /// The number of the line, counted from 1. Empty lines and comments may precede it.
    pub number: u64,
}

/// What the first line of a file says of a table. Empty lines and comments before it do not count.
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
    /// Looks at the beginning of a file, without its byte-order mark.
    pub(crate) fn of_content(content: &[u8]) -> Self {
        let content = behind_comments(content);
        FirstLine::of(content.split(|byte| *byte == b'\n').next().unwrap_or(content))
    }

    /// Looks at the first line of a file, without its byte-order mark.
    pub(crate) fn of(line: &[u8]) -> Self {
        let line = line.trim_ascii_end();
        if line.is_empty()
            || line.contains(&0)
            || matches!(line[0], b'{' | b'[' | b'<')
            || begins_like_text(line)
        {
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

/// Returns whether a line before a header is none: it is empty, or begins with `#` and does not name a column of texts.
pub(super) fn is_before_header(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line[0] == b'#' && !matches!(FirstLine::of(line), FirstLine::Header(_))
}

/// Returns the content behind the empty lines and comments at its beginning.
pub(crate) fn behind_comments(mut content: &[u8]) -> &[u8] {
    while let Some(end) = memchr(b'\n', content).filter(|end| is_before_header(&content[..*end])) {
        content = &content[end + 1..];
    }
    content
}

/// Returns whether a field of a first line may be the name of a column: short, and not a number.
fn is_name(field: &str) -> bool {
    field.len() <= 64 && !field.contains("]<") && field.trim().parse::<f64>().is_err()
}

impl Header {
    /// Returns the fields of a line; `None` if they are broken.
    fn split(line: &[u8], delimiter: u8) -> Option<Self> {
        let columns = Fields::new(line, delimiter)
            .map(|field| Some(std::str::from_utf8(&field.ok()?).ok()?.trim().to_owned()));
        Some(Header { delimiter, columns: columns.collect::<Option<Vec<_>>>()?, line: Vec::new(), number: 1 })
    }

    /// Returns the position of a column.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Returns the columns that may hold texts, best first.
    fn text_columns(&self) -> impl Iterator<Item = usize> {
        TEXT_FIELDS.into_iter().filter_map(|name| self.place(name))
    }

    /// Returns the columns as a message shows them.
    pub(crate) fn shown(&self) -> String {
        let names =
            self.columns.iter().take(COLUMNS_SHOWN).map(|name| format!("`{}`", shortened_end(name, 40)));
        let more = if self.columns.len() > COLUMNS_SHOWN { ", …" } else { "" };
        format!("{}{more}", names.collect::<Vec<_>>().join(", "))
    }

    /// Returns the positions of the columns that a filter asks for.
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

/// Returns what is wrong with a table that has no texts, or no header, and what to do.
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
