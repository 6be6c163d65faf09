//! The first line of a file of generated texts.

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::run::GenerationRun;
use super::settings::GenerationProtocol;
use drift_core::job::Provenance;

/// The schema of [`TextsHeader`].
pub const TEXTS_SCHEMA: &str = "drift.texts/1";

/// The first line of a file of generated texts. Each line after it is a [`TextLine`](crate::audit::TextLine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextsHeader {
    /// [`TEXTS_SCHEMA`].
    pub schema: String,
    /// The program and its inputs.
    pub provenance: Provenance,
    /// The date and the machine.
    pub environment: Environment,
    /// The settings.
    pub protocol: GenerationProtocol,
    /// Whether the generation was interrupted, or shards are missing, so that texts are missing.
    pub interrupted: bool,
    /// One entry per model, logit processor and placeholder, in the order of their texts.
    pub runs: Vec<GenerationRun>,
    /// Computations that differed from what was requested, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl TextsHeader {
    /// Whether a line of JSON is a header of any version. Its other fields need not be readable.
    pub fn is_header(line: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Schema<'l> {
            #[serde(borrow)]
            schema: std::borrow::Cow<'l, str>,
        }
        let read: Result<Schema<'_>, _> = serde_json::from_slice(line);
        read.is_ok_and(|read| read.schema.starts_with("drift.texts/"))
    }
}
