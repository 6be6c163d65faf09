//! Which rows of a table or of JSON Lines are read: those with given values in given columns.

use std::sync::Arc;

use super::json_columns;
use crate::parameter;
use drift_core::{Error, Result};

/// Picks rows by the values of their columns. Without conditions, every row is picked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// By column: the values of which a row must have one.
    conditions: Arc<[Condition]>,
}

/// The values that a column may have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    column: String,
    values: Vec<String>,
}

impl RowFilter {
    /// Returns a filter from conditions of the form `column=value`. A row is picked if each named column has one of the values that the
    /// conditions give for it.
    ///
    /// # Errors
    /// If a condition has no `=`, or no column.
    pub fn new<'c>(conditions: impl IntoIterator<Item = &'c str>) -> Result<Self> {
        let mut all: Vec<Condition> = Vec::new();
        for condition in conditions {
            let Some((column, value)) = condition.split_once('=').filter(|(column, _)| !column.is_empty())
            else {
                let problem = format!("`{condition}` is not of the form column=value");
                return Err(Error::parameter(parameter::WHERE, problem, "write for example dataset=GEOM"));
            };
            match all.iter_mut().find(|known| known.column == column) {
                Some(known) => known.values.push(value.to_owned()),
                None => all.push(Condition { column: column.to_owned(), values: vec![value.to_owned()] }),
            }
        }
        Ok(RowFilter { conditions: all.into() })
    }

    /// Returns whether every row is picked.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Returns the columns that decide.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().map(|condition| &*condition.column)
    }

    /// Returns whether a row is picked, given the values of [`columns`](Self::columns) in order.
    pub(crate) fn picks<'v>(&self, values: impl IntoIterator<Item = &'v [u8]>) -> bool {
        let pairs = self.conditions.iter().zip(values);
        pairs.into_iter().all(|(condition, value)| condition.values.iter().any(|one| one.as_bytes() == value))
    }

    /// Returns whether a row of JSON Lines is picked. Numbers and truth values count as they are written in JSON, `null` as the empty
    /// text.
    ///
    /// # Errors
    /// A reason: the row is not an object, or lacks a column.
    pub(crate) fn picks_json(&self, row: &str) -> Result<bool, String> {
        if self.is_empty() {
            return Ok(true);
        }
        let columns: Vec<&str> = self.columns().collect();
        let values = json_columns::values(row, &columns)?;
        for (condition, value) in self.conditions.iter().zip(&values) {
            if value.is_none() {
                return Err(format!("it has no field `{}`, by which rows are picked", condition.column));
            }
        }
        Ok(self.picks(values.iter().flatten().map(|value| value.as_bytes())))
    }

    /// Refuses a file whose records have no columns, if there are conditions.
    ///
    /// # Errors
    /// If there are conditions.
    pub(crate) fn refuse(&self, file: &str, format: &str) -> Result<()> {
        let Some(column) = self.columns().next() else { return Ok(()) };
        let problem = format!("is {format}, whose records have no column `{column}`");
        let remedy = format!("give {} with CSV, TSV or JSON Lines", parameter::WHERE);
        Err(Error::input(file, problem, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_must_all_agree_and_values_are_alternatives() {
        let filter = RowFilter::new(["dataset=GEOM", "test_subset=", "dataset=a=b"]).unwrap();
        assert_eq!(filter.columns().collect::<Vec<_>>(), ["dataset", "test_subset"]);
        for (row, picked) in [
            (r#"{"dataset": "GEOM", "test_subset": null, "x": [1, {"dataset": 2}]}"#, Ok(true)),
            (r#"{"test_subset": "", "dataset": "a=b"}"#, Ok(true)),
            (r#"{"test_subset": "loqi", "dataset": "GEOM"}"#, Ok(false)),
            (r#"{"test_subset": "", "dataset": "ZINC"}"#, Ok(false)),
        ] {
            assert_eq!(filter.picks_json(row), picked, "{row}");
        }
        assert!(filter.picks_json(r#"{"dataset": "GEOM"}"#).unwrap_err().contains("no field `test_subset`"));
        assert!(filter.picks_json("[1]").is_err());
        let number = RowFilter::new(["row=7"]).unwrap();
        assert_eq!(number.picks_json(r#"{"row": 7}"#), Ok(true));
        for broken in ["dataset", "=x", ""] {
            assert!(RowFilter::new([broken]).is_err(), "{broken}");
        }
        assert!(RowFilter::default().picks_json("no JSON").unwrap());
    }
}
