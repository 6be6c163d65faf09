//! The first line of a file of generated texts.

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::run::GenerationRun;
use super::settings::GenerationProtocol;
use crate::corpus::fields::ANY_TEXTS_SCHEMA;
use drift_core::job::Provenance;
use drift_core::{Error, Result};

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

/// The field that says whether a line is a header.
#[derive(Deserialize)]
struct Schema {
    schema: String,
}

impl TextsHeader {
    /// Returns the header in the first line of a file; `None` if the line is something else.
    ///
    /// # Errors
    /// If it is a header of another version, or damaged.
    pub fn of_line(line: &[u8], file: &str) -> Result<Option<Self>> {
        let named = serde_json::from_slice::<Schema>(line).ok();
        let Some(Schema { schema }) = named.filter(|named| named.schema.starts_with(ANY_TEXTS_SCHEMA)) else {
            return Ok(None);
        };
        if schema != TEXTS_SCHEMA {
            let problem =
                format!("line 1: its texts have the format {schema}, and this drift reads {TEXTS_SCHEMA}");
            return Err(Error::input(file, problem, "read them with the drift that wrote them"));
        }
        let damaged = |e: serde_json::Error| {
            Error::input(file, format!("line 1: a damaged header: {e}"), "write the texts again")
        };
        serde_json::from_slice(line).map(Some).map_err(damaged)
    }
}
