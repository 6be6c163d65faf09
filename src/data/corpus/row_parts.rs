//! What is kept of rows beside their conformers: the values of some columns, and the bytes of the rows themselves.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Format;
use drift_core::error::Parameter;
use drift_core::{Error, Result};

/// What to keep of the rows of tables and JSON Lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowNeeds {
    /// The columns whose values are kept.
    pub columns: &'static [&'static str],
    /// The parameter for which the bytes of the rows are kept; `None` if they are not.
    pub bytes_for: Option<Parameter>,
}

impl RowNeeds {
    /// Refuses a file whose records are no rows, if their bytes are needed.
    ///
    /// # Errors
    /// If they are.
    pub(crate) fn refuse(self, file: &str, format: Format) -> Result<()> {
        let Some(parameter) = self.bytes_for else { return Ok(()) };
        if matches!(format, Format::Jsonl | Format::Plain | Format::Table) {
            return Ok(());
        }
        let problem = format!("is {}, whose records are no rows that {parameter} could write", format.name());
        Err(Error::input(file, problem, "give CSV, TSV, JSON Lines or enriched text"))
    }
}

/// The values of the asked columns, in their order; `None` for a value that is missing or empty.
pub type Cells = smallvec::SmallVec<[Option<Arc<str>>; 3]>;

/// How rows are laid out in their file. Rows of one layout can be written into one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowLayout {
    /// The name of the format.
    pub format: String,
    /// The header of a table with its line end; else empty.
    pub header: String,
}

impl RowLayout {
    /// Returns the layout of a file.
    pub(crate) fn new(format: Format, header: &[u8]) -> Self {
        let mut header = String::from_utf8_lossy(header).into_owned();
        if !header.is_empty() && !header.ends_with('\n') {
            header.push('\n');
        }
        RowLayout { format: format.name().to_owned(), header }
    }
}

/// The bytes of the rows of a batch that gave a conformer.
#[derive(Debug, Default)]
pub struct RowBytes {
    /// The layout of the rows; `None` if their bytes were not asked for.
    pub layout: Option<Arc<RowLayout>>,
    /// By read record, the index of its row. Several records may lie in one row.
    pub row_of: Vec<u32>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowBytes {
    /// Adds a row, which ends with its line end unless the file ends with it. It gave so many records.
    pub(super) fn push(&mut self, row: &[u8], records: usize) {
        let at = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        self.row_of.extend(std::iter::repeat_n(at, records));
        self.bytes.extend_from_slice(row);
        if !row.ends_with(b"\n") {
            self.bytes.push(b'\n');
        }
        self.ends.push(self.bytes.len());
    }

    /// Returns the rows in order, each with its line end.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}
