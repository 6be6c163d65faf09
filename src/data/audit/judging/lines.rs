//! The results for one text, as a line of JSON.

use std::path::Path;

use serde::Serialize;

use super::verdict::ConformerVerdict;
use drift_core::io::AtomicFile;
use drift_core::{Error, Result};

/// A line of `--verdicts`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictLine {
    /// The id of the text in its file, or else its position there.
    pub id: String,
    /// The file; `None` for texts that were just generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The position of the text in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The model, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The logit processor, if it is known.
    pub lp: Option<String>,
    /// Its placeholder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// The SMILES of the prompt.
    pub smiles: Option<String>,
    /// The SMILES under which texts of several isomers are pooled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geom_smiles: Option<String>,
    /// The index of the text among those of its molecule, from 0.
    pub generation: u64,
    /// The index among the conformers of its text, from 0.
    pub place: usize,
    /// The line, from 0, of the first text of its molecule that has the same conformer.
    pub duplicate_of: Option<usize>,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: ConformerVerdict,
}

impl VerdictLine {
    /// Returns its JSON, with the line break.
    ///
    /// # Errors
    /// Only on a bug in drift.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self).map_err(|e| Error::internal("a verdict", e))? + "\n")
    }

    /// Writes lines to a file that is not yet renamed into place.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn file(path: &Path, lines: &[VerdictLine]) -> Result<AtomicFile> {
        let mut file = AtomicFile::create(path)?;
        lines.iter().try_for_each(|line| file.put(line.json()?.as_bytes()))?;
        Ok(file)
    }
}
