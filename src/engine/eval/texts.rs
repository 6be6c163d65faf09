//! Generated texts as lines, and how far those of one run are those of another.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use drift_core::constraint::ProcessorKind;
use drift_core::error::{Error, Result};
use drift_core::io::{self, BoundedLines};
use drift_core::job::Job;

/// The longest line of texts that is read, in bytes.
const MAX_LINE_BYTES: usize = 16 << 20;

/// One generated text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextRecord {
    /// The prompt's SMILES.
    pub smiles: String,
    /// The SMILES that pools it with other isomers, if there is one; `drift audit --pool` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geom_smiles: Option<String>,
    /// Which of the molecule's texts.
    pub generation: usize,
    /// The logit processor.
    pub lp: ProcessorKind,
    /// Its placeholder.
    pub placeholder: Option<String>,
    /// The model's name.
    pub model: String,
    /// What was written after the prompt, special tokens kept, the end of text dropped.
    pub text: String,
}

/// What a text is known by: model, logit processor, placeholder, SMILES, generation.
pub(super) type Key = (String, ProcessorKind, Option<String>, String, usize);

/// The texts of another run.
#[derive(Debug)]
pub struct OtherTexts {
    pub(super) file: String,
    pub(super) texts: HashMap<Key, String>,
}

impl OtherTexts {
    /// Reads what `drift eval --texts` wrote.
    ///
    /// # Errors
    /// If a line is none of it.
    pub fn read(path: &Path, job: &Job) -> Result<Self> {
        let mut lines = BoundedLines::new(io::open(path, job).reader, MAX_LINE_BYTES);
        let mut texts = HashMap::new();
        while let Some(line) = lines.next_line().map_err(|e| Error::io(path, e))? {
            if line.bytes.is_empty() {
                continue;
            }
            let record: TextRecord = serde_json::from_slice(line.bytes).map_err(|e| {
                let place = format!("{}, line {}", path.display(), line.number);
                Error::input(place, format!("is not a text of an evaluation: {e}"), "give what --texts wrote")
            })?;
            let TextRecord { smiles, generation, lp, placeholder, model, text, .. } = record;
            texts.insert((model, lp, placeholder, smiles, generation), text);
        }
        Ok(OtherTexts { file: io::file_name(path), texts })
    }
}

/// How far the texts of this run are those of another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SameTexts {
    /// The file of the others.
    pub file: String,
    /// Texts of this run that have another.
    pub compared: u64,
    /// Those that are the same, byte for byte.
    pub equal: u64,
    /// Texts of this run that the file lacks.
    pub missing: u64,
    /// The first of those that differ.
    pub differences: Vec<TextDifference>,
}

/// Where a text first differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextDifference {
    /// The model's name.
    pub model: String,
    /// The logit processor.
    pub lp: ProcessorKind,
    /// The prompt's SMILES.
    pub smiles: String,
    /// Which of its texts.
    pub generation: usize,
    /// Tokens that both have before.
    pub tokens: usize,
    /// The token of this run there; empty where its text ends.
    pub ours: String,
    /// How the other goes on.
    pub theirs: String,
    /// By how much the best logit of those that were allowed there led the second, by this run's device. A small one tells that
    /// sums were added in another order; none if there is no second, or the model is not drift's to ask.
    pub lead: Option<f32>,
}
