//! The format of `--molecules`: a line for each molecule.

use std::path::Path;

use drift_core::Error;
use drift_data::audit::ensemble::MoleculeMeasures;
use drift_data::audit::{MoleculeRecord, molecules_csv};

/// The format of the lines of `--molecules`.
#[derive(Clone, Copy)]
pub(super) enum LinesFormat {
    Csv,
    Jsonl,
}

impl LinesFormat {
    /// Returns the format by the file's extension, since the file does not exist yet.
    pub(super) fn from_path(path: &Path) -> Result<Self, Error> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(LinesFormat::Csv),
            Some("jsonl") => Ok(LinesFormat::Jsonl),
            _ => {
                let place = format!("--molecules {}", path.display());
                let problem = "is not the name of a CSV or JSON Lines file";
                Err(Error::input(place, problem, "give a name that ends in .csv or .jsonl"))
            }
        }
    }

    pub(super) fn render(
        self,
        records: &[MoleculeRecord],
        measures: MoleculeMeasures<'_>,
    ) -> serde_json::Result<String> {
        match self {
            LinesFormat::Csv => Ok(molecules_csv(records, measures)),
            LinesFormat::Jsonl => {
                let lines = records.iter().map(serde_json::to_string);
                lines.map(|line| line.map(|line| line + "\n")).collect()
            }
        }
    }
}
