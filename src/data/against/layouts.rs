//! Whether the rows of several files can be written into one.

use crate::corpus::RowLayout;
use drift_core::{Error, Result};

/// The layout of the rows that are written, once there are any.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    first: Option<RowLayout>,
}

impl Layouts {
    /// Returns the header to write before rows of a file, which may be empty; `None` if another file came first.
    ///
    /// # Errors
    /// If the rows of the files before have another layout.
    pub(super) fn begin(&mut self, layout: &RowLayout, file: &str) -> Result<Option<String>> {
        let Some(first) = &self.first else {
            self.first = Some(layout.clone());
            return Ok(Some(layout.header.clone()));
        };
        let ends = ['\r', '\n'];
        let header = |layout: &RowLayout| layout.header.trim_end_matches(ends).to_owned();
        if first.format != layout.format {
            let problem = format!("is {}, and the files before are {}", layout.format, first.format);
            return Err(Error::input(file, problem, "write the rows that stay for each format by itself"));
        }
        if header(first) != header(layout) {
            let problem = "has another header than the tables before, so its rows cannot follow theirs";
            return Err(Error::input(file, problem, "write the rows that stay for each header by itself"));
        }
        Ok(None)
    }
}
