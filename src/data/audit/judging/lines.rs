//! What was found of a text, as a line of JSON.

use std::path::Path;

use serde::Serialize;

use super::verdict::ConformerVerdict;
use drift_core::error::{Error, Result};
use drift_core::io::AtomicFile;

/// A line of `--verdicts`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictLine {
    /// What its file calls the text, else where it stands in it.
    pub id: String,
    /// The file; none of texts that were just generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where it stands in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The model, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The logit processor, where it is known.
    pub lp: Option<String>,
    /// Its placeholder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    /// The SMILES of the prompt.
    pub smiles: Option<String>,
    /// The SMILES that texts of several isomers are pooled under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geom_smiles: Option<String>,
    /// Which of its molecule's texts it is, from 0.
    pub generation: u64,
    /// Its place among the conformers of its text, from 0.
    pub place: usize,
    /// The line, from 0, of the first text of its molecule that has the same conformer.
    pub duplicate_of: Option<usize>,
    /// What was found.
    #[serde(flatten)]
    pub verdict: ConformerVerdict,
}

impl VerdictLine {
    /// Its JSON, with the line break.
    ///
    /// # Errors
    /// Never, but for a fault of drift's own.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self).map_err(|e| Error::internal("a verdict", e))? + "\n")
    }

    /// Lines in a file that is not in its place yet.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn file(path: &Path, lines: &[VerdictLine]) -> Result<AtomicFile> {
        let mut file = AtomicFile::create(path)?;
        lines.iter().try_for_each(|line| file.put(line.json()?.as_bytes()))?;
        Ok(file)
    }
}
