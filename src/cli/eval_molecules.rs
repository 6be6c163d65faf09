//! Messages of `drift eval` about its molecules, and the format of `--molecules`.

use std::path::{Path, PathBuf};

use crate::report::format::thousands;
use drift_core::error::Error;
use drift_data::audit::{MoleculeRecord, molecules_csv};
use drift_data::prompts::{Molecules, ReferenceCounts};

/// The name of a corpus in messages.
pub(super) fn named(inputs: &[PathBuf]) -> String {
    match inputs {
        [] => "the embedded corpus".to_owned(),
        [one] => drift_core::io::file_name(one),
        several => format!("{} inputs", several.len()),
    }
}

/// The format of the lines of `--molecules`.
#[derive(Clone, Copy)]
pub(super) enum LinesFormat {
    Csv,
    Jsonl,
}

impl LinesFormat {
    /// The format by the file's extension, since the file does not exist yet.
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

    pub(super) fn render(self, records: &[MoleculeRecord], thresholds: &[f64]) -> serde_json::Result<String> {
        match self {
            LinesFormat::Csv => Ok(molecules_csv(records, thresholds)),
            LinesFormat::Jsonl => {
                let lines = records.iter().map(serde_json::to_string);
                lines.map(|line| line.map(|line| line + "\n")).collect()
            }
        }
    }
}

/// A note on references that could not be used and molecules without a reference, if there are any.
pub(super) fn reference_note(counts: &ReferenceCounts) -> Option<String> {
    let parts = [
        (counts.without_order, "whose atoms are not in the order of a SMILES"),
        (counts.other_stereo, "with another stereo than the prompt"),
        (counts.not_asked_for, "of molecules that were not asked for"),
    ];
    let some = parts.iter().filter(|(count, _)| *count > 0);
    let mut said: Vec<String> = some.map(|(count, what)| format!("{} {what}", thousands(*count))).collect();
    if !said.is_empty() {
        let why = counts.unused.first();
        let why =
            why.map_or_else(String::new, |first| format!(" (such as {}: {})", first.record, first.reason));
        said = vec![format!("conformers that could not be used: {}{why}", said.join(", "))];
    }
    if counts.from.is_some() && counts.prompts_without > 0 {
        said.push(format!("molecules without a reference: {}", thousands(counts.prompts_without)));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// A note on the records that could not be read.
pub(super) fn skipped(molecules: &Molecules) -> String {
    let first = molecules.skipped_records.first();
    let example =
        first.map_or_else(String::new, |first| format!(", such as {}: {}", first.record, first.reason));
    format!("skipped {} records{example}", molecules.skipped)
}
