//! The comparison of the texts of two runs.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use drift_core::constraint::ProcessorKind;
use drift_core::io::{self, BoundedLines};
use drift_core::{Error, Job, Result};
use drift_data::audit::TextLine;
use drift_data::generation::TextsHeader;

/// The longest line that is read, in bytes.
const MAX_LINE_BYTES: usize = 16 << 20;

/// The key of a text: model, logit processor, placeholder, SMILES, generation.
pub(super) type Key = (String, ProcessorKind, Option<String>, String, usize);

/// The texts of another run.
#[derive(Debug)]
pub struct OtherTexts {
    pub(super) file: String,
    pub(super) texts: HashMap<Key, String>,
}

impl OtherTexts {
    /// Reads a file that `drift eval --texts` or `drift generate` wrote.
    ///
    /// # Errors
    /// If a line has another format.
    pub fn read(path: &Path, job: &Job) -> Result<Self> {
        let mut lines = BoundedLines::new(io::open(path, job).reader, MAX_LINE_BYTES);
        let mut texts = HashMap::new();
        while let Some(line) = lines.next_line().map_err(|e| Error::io(path, e))? {
            let is_header =
                line.number == 1 && TextsHeader::of_line(line.bytes, &io::file_name(path))?.is_some();
            if line.bytes.is_empty() || is_header {
                continue;
            }
            let record: TextLine = serde_json::from_slice(line.bytes).map_err(|e| {
                let place = format!("{}, line {}", path.display(), line.number);
                Error::input(
                    place,
                    format!("is not a text of an evaluation: {e}"),
                    "give what drift generate or --texts wrote",
                )
            })?;
            let TextLine { smiles, generation, lp, placeholder, model, text, .. } = record;
            texts.insert((model, lp, placeholder, smiles, generation), text);
        }
        Ok(OtherTexts { file: io::file_name(path), texts })
    }
}

/// The agreement of the texts of this run with those of another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SameTexts {
    /// The file of the other texts.
    pub file: String,
    /// The number of texts of this run that the file contains too.
    pub compared: u64,
    /// How many of these are equal byte for byte.
    pub equal: u64,
    /// The number of texts of this run that the file lacks.
    pub missing: u64,
    /// The first differences.
    pub differences: Vec<TextDifference>,
}

/// The first difference between two texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextDifference {
    /// The model's name.
    pub model: String,
    /// The logit processor.
    pub lp: ProcessorKind,
    /// The prompt's SMILES.
    pub smiles: String,
    /// The index of the text among those of the molecule.
    pub generation: usize,
    /// The number of tokens that both texts have before the difference.
    pub tokens: usize,
    /// The token of this run at the difference; empty if its text ends there.
    pub ours: String,
    /// The continuation of the other text.
    pub theirs: String,
    /// By how much the best of the allowed logits exceeds the second best there, on this run's device. A small lead indicates that
    /// sums were added in another order. `None` if there is no second logit, or drift does not run the model.
    pub lead: Option<f32>,
}
