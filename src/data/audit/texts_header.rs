//! The first line of a file that `drift generate` wrote: what its texts have in common.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pairs::{BatchTimes, SpeedMeasure};
use super::row_label::RowLabel;
use drift_core::error::{Error, Result};

/// The schema of files of generated texts.
pub const TEXTS_SCHEMA: &str = "drift.texts/1";

/// What all schemas of such files begin with.
const ANY_SCHEMA: &str = "drift.texts/";

/// The longest line in which a schema is looked for, in bytes.
const MAX_HEADER_BYTES: usize = 64 << 20;

/// What an audit needs of the header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextsHeader {
    /// [`TEXTS_SCHEMA`].
    pub schema: String,
    /// The settings.
    #[serde(default)]
    pub protocol: HeaderProtocol,
    /// By model, logit processor and placeholder, what generation measured.
    #[serde(default)]
    pub runs: Vec<HeaderRun>,
}

/// The settings that comparisons depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeaderProtocol {
    /// The seed.
    #[serde(default)]
    pub seed: u64,
}

/// What generation measured of one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeaderRun {
    /// The row.
    #[serde(flatten)]
    pub row: RowLabel,
    /// Its figures, with the names that records of `drift eval` have: `tokenizer`, `device`, `tokens_per_second` …
    #[serde(flatten)]
    pub figures: Map<String, Value>,
}

/// The field of a header that says whose it is.
#[derive(Deserialize)]
struct Schema {
    schema: Option<String>,
}

impl TextsHeader {
    /// The header in a line; `None` if the line is another one.
    ///
    /// # Errors
    /// If it is a header of another version, or is damaged.
    pub(super) fn of_line(line: &[u8], file: &str) -> Result<Option<Self>> {
        let is_object = line.trim_ascii_start().starts_with(b"{") && line.len() <= MAX_HEADER_BYTES;
        let schema = is_object.then(|| serde_json::from_slice::<Schema>(line).ok()).flatten();
        let Some(schema) = schema.and_then(|found| found.schema).filter(|name| name.starts_with(ANY_SCHEMA))
        else {
            return Ok(None);
        };
        if schema != TEXTS_SCHEMA {
            let problem =
                format!("line 1: the texts have the format {schema}, and this drift reads {TEXTS_SCHEMA}");
            return Err(Error::input(file, problem, "read them with the drift that wrote them"));
        }
        let damaged = |e: serde_json::Error| {
            Error::input(file, format!("line 1: a damaged header: {e}"), "write the texts again")
        };
        serde_json::from_slice(line).map(Some).map_err(damaged)
    }
}

impl HeaderRun {
    /// The seconds of its batches; empty if they are not stated.
    pub(super) fn times(&self) -> BatchTimes {
        let field = |name: &str| self.figures.get(name).cloned();
        let seconds = field("batch_seconds").and_then(|value| serde_json::from_value(value).ok());
        let measure = field("speed_measure").and_then(|value| serde_json::from_value(value).ok());
        BatchTimes { measure: measure.unwrap_or(SpeedMeasure::Wall), seconds: seconds.unwrap_or_default() }
    }

    /// A figure, if it is stated and is a number.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.figures.get(name)?.as_f64()
    }
}
