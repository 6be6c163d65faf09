//! One figure of two files, and what may be kept of one file.

use serde::Serialize;

/// The most figures, names and open events that are kept of a file, by their bytes.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// What an entry takes beside its texts.
const ENTRY_BYTES: usize = 64;

/// What is said of a file with more.
pub(super) const TOO_MANY: &str = "contains more figures than fit into memory";

/// Figures by name, in order.
pub(super) type Figures = Vec<(String, f64)>;

/// One figure of both files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The field's name, with dots between levels; of a category of events `name: seconds` and `name: events`; in a table of
    /// traces what is measured, with its unit.
    pub name: String,
    /// In the first and in the second file; none where a file lacks it.
    pub values: [Option<f64>; 2],
    /// The second by the first; none unless both are known and the first is not 0.
    pub ratio: Option<f64>,
}

impl Figure {
    pub(super) fn new(name: String, values: [Option<f64>; 2]) -> Self {
        let ratio = match values {
            [Some(a), Some(b)] if a != 0.0 => Some(b / a),
            _ => None,
        };
        Figure { name, values, ratio }
    }
}

/// What is kept, against [`MAX_KEPT_BYTES`].
#[derive(Default)]
pub(super) struct Kept(usize);

impl Kept {
    /// Counts an entry.
    pub(super) fn add<E: serde::de::Error>(&mut self, texts: &[&str]) -> Result<(), E> {
        self.0 += ENTRY_BYTES + texts.iter().map(|text| text.len()).sum::<usize>();
        if self.0 > MAX_KEPT_BYTES { Err(E::custom(TOO_MANY)) } else { Ok(()) }
    }
}
