//! What tells the rows of a report apart: the model, the logit processor, and its placeholder; and the row that others are compared
//! with.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::generation::GenerationRun;
use crate::parameter;
use drift_core::constraint::ProcessorKind;
use drift_core::{Error, Result};

/// What is known of the origin of a row's texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct RowLabel {
    /// The model's name, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The logit processor, if it is known.
    pub lp: Option<String>,
    /// The placeholder of the logit processor, if it has one.
    pub placeholder: Option<String>,
}

impl RowLabel {
    /// Returns the row of a model under a logit processor of drift.
    pub fn new(model: &str, processor: ProcessorKind, placeholder: Option<&str>) -> Self {
        let [model, lp] = [model, processor.name()].map(|name| Some(name.to_owned()));
        RowLabel { model, lp, placeholder: placeholder.map(str::to_owned) }
    }

    /// Returns the row of a run of a generation.
    pub fn of_run(run: &GenerationRun) -> Self {
        RowLabel::new(&run.model, run.lp, run.placeholder.as_deref())
    }

    /// Returns the row under which texts of a file are reported: that of the file, if neither model nor logit processor is known.
    pub(super) fn reported(&self, file: &str) -> Self {
        if self.model.is_none() && self.lp.is_none() {
            return RowLabel { lp: Some(file.to_owned()), ..RowLabel::default() };
        }
        self.clone()
    }

    /// Returns the logit processor with its placeholder, or `-` if it is not known.
    pub fn processor(&self) -> String {
        let lp = self.lp.as_deref().unwrap_or("-");
        self.placeholder.as_ref().map_or_else(|| lp.to_owned(), |placeholder| format!("{lp} {placeholder}"))
    }

    /// Returns the name of the row in messages: its logit processor with its placeholder, or else its model.
    pub fn name(&self) -> String {
        match (&self.lp, &self.model) {
            (None, Some(model)) => model.clone(),
            _ => self.processor(),
        }
    }

    /// Returns the model, if it is known, and the logit processor with its placeholder.
    pub fn full_name(&self) -> String {
        match (&self.model, &self.lp) {
            (Some(model), Some(_)) => format!("{model} {}", self.processor()),
            _ => self.name(),
        }
    }

    /// Returns the names by which a user may mean the row.
    fn names(&self) -> Vec<String> {
        let RowLabel { model, lp, .. } = self;
        let mut names = vec![self.name()];
        names.extend(lp.clone());
        names.extend(model.clone());
        names.push(self.full_name());
        let file = lp.as_deref().map(Path::new);
        let parts = [file.and_then(Path::file_name), file.and_then(Path::file_stem)];
        names.extend(parts.into_iter().flatten().map(|part| part.to_string_lossy().into_owned()));
        names
    }

    /// Returns whether the texts were written by the model alone.
    pub(crate) fn is_without_processor(&self) -> bool {
        self.lp.as_deref() == Some(ProcessorKind::None.name())
    }

    /// Returns whether the texts were written under drift's own logit processor.
    pub fn is_automaton(&self) -> bool {
        self.lp.as_deref() == Some(ProcessorKind::Automaton.name())
    }

    /// Returns whether the texts were written under the mask that knows geometry.
    pub(crate) fn is_geometry(&self) -> bool {
        self.lp.as_deref() == Some(ProcessorKind::Geometry.name())
    }
}

/// For each row, the row with which it is compared.
#[derive(Debug)]
pub(super) struct BaseRows {
    bases: Vec<Option<usize>>,
    only: Option<RowLabel>,
}

impl BaseRows {
    /// Returns the same base for all other rows.
    pub(super) fn single(rows: &[&RowLabel], base: usize) -> Self {
        let bases = (0..rows.len()).map(|row| Some(base).filter(|base| *base != row)).collect();
        BaseRows { bases, only: rows.get(base).map(|label| (*label).clone()) }
    }

    /// Returns the base rows of rows, given the name of one: with a name that each model has, such as `none`, each model's own.
    ///
    /// # Errors
    /// If no row has the name, or a row has several bases and none is of its model.
    pub(super) fn find(rows: &[&RowLabel], wanted: &str) -> Result<Self> {
        let is_named = |at: &usize| rows[*at].names().iter().any(|name| name == wanted);
        // A name that only one row has wins over one that is part of several.
        let exact: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].name() == wanted).collect();
        let named: Vec<usize> =
            if exact.is_empty() { (0..rows.len()).filter(is_named).collect() } else { exact };
        if named.is_empty() {
            return Err(no_row(rows, wanted));
        }
        let base = |at: usize| {
            if named.contains(&at) {
                return Ok(None);
            }
            match named.as_slice() {
                [only] => Ok(Some(*only)),
                several => several
                    .iter()
                    .find(|base| rows[**base].model == rows[at].model)
                    .map(|base| Some(*base))
                    .ok_or_else(|| several_bases(rows, several, at, wanted)),
            }
        };
        let bases = (0..rows.len()).map(base).collect::<Result<Vec<_>>>()?;
        let only = match named.as_slice() {
            [only] => Some(rows[*only].clone()),
            _ => None,
        };
        Ok(BaseRows { bases, only })
    }

    /// Returns the base of a row; `None` for a base itself.
    pub(super) fn of_row(&self, row: usize) -> Option<usize> {
        self.bases[row]
    }

    /// Returns the number of rows that are compared with a base.
    pub(super) fn rows_beside(&self, base: usize) -> usize {
        self.bases.iter().filter(|of_row| **of_row == Some(base)).count()
    }

    /// Returns the base, if all rows have the same.
    pub(super) fn only(&self) -> Option<&RowLabel> {
        self.only.as_ref()
    }
}

fn no_row(rows: &[&RowLabel], wanted: &str) -> Error {
    let known = |row: &&RowLabel| row.names().into_iter().find(|name| name.eq_ignore_ascii_case(wanted));
    let remedy = match rows.iter().find_map(known) {
        Some(other) => format!("give `{other}`, whose letters differ in case"),
        None => {
            let names: Vec<String> = rows.iter().map(|row| format!("`{}`", row.name())).collect();
            format!("give one of {}", names.join(", "))
        }
    };
    Error::parameter(parameter::AGAINST_ROW, format!("there is no row `{wanted}`"), remedy)
}

fn several_bases(rows: &[&RowLabel], bases: &[usize], row: usize, wanted: &str) -> Error {
    let problem = format!(
        "{} rows are called `{wanted}`, and none is of the model of `{}`",
        bases.len(),
        rows[row].name()
    );
    let example = bases.iter().find_map(|base| {
        let label = rows[*base];
        Some(format!("give one, such as `{} {}`", label.model.as_ref()?, label.processor()))
    });
    let remedy = example.unwrap_or_else(|| "audit the files of one model at a time".to_owned());
    Error::parameter(parameter::AGAINST_ROW, problem, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(model: Option<&str>, lp: Option<&str>, placeholder: Option<&str>) -> RowLabel {
        let [model, lp, placeholder] = [model, lp, placeholder].map(|name| name.map(str::to_owned));
        RowLabel { model, lp, placeholder }
    }

    #[test]
    fn each_model_has_its_own_base() {
        let rows = ["a", "b"].map(|model| {
            [label(Some(model), Some("none"), None), label(Some(model), Some("automaton"), None)]
        });
        let rows: Vec<&RowLabel> = rows.iter().flatten().collect();
        let bases = |wanted: &str| BaseRows::find(&rows, wanted).map(|found| found.bases);
        assert_eq!(bases("none").unwrap(), [None, Some(0), None, Some(2)]);
        assert_eq!(bases("a none").unwrap(), [None, Some(0), Some(0), Some(0)]);
        let error = bases("None").unwrap_err().to_string();
        assert!(error.contains("give `none`, whose letters differ in case"), "{error}");
        let error = bases("grammar").unwrap_err().to_string();
        assert!(error.contains("give one of `none`, `automaton`"), "{error}");
    }

    #[test]
    fn rows_may_be_files_models_or_placeholders() {
        let files =
            [label(None, Some("out/plain.jsonl"), None), label(None, Some("out/grammar.jsonl"), None)];
        let files: Vec<&RowLabel> = files.iter().collect();
        for name in ["out/plain.jsonl", "plain.jsonl", "plain"] {
            assert_eq!(BaseRows::find(&files, name).unwrap().bases, [None, Some(0)], "{name}");
        }
        let models = [label(Some("small"), None, None), label(Some("large"), None, None)];
        let models: Vec<&RowLabel> = models.iter().collect();
        assert_eq!(BaseRows::find(&models, "large").unwrap().bases, [Some(1), None]);
        let two = [label(None, Some("allowlist"), Some("0.0")), label(None, Some("allowlist"), Some("0.00"))];
        let two: Vec<&RowLabel> = two.iter().collect();
        assert_eq!(BaseRows::find(&two, "allowlist 0.00").unwrap().bases, [Some(1), None]);
    }
}
