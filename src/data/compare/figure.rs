//! One figure of two files, and the limit on what is kept of a file.

use serde::Serialize;

/// The largest total size in bytes of the figures, names and open events that are kept of a file.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// The size in bytes of an entry without its texts.
const ENTRY_BYTES: usize = 64;

/// The error for a file with more.
pub(super) const TOO_MANY: &str = "contains more figures than fit into memory";

/// Figures by name, in order.
pub(super) type Figures = Vec<(String, f64)>;

/// One figure in both files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The name: for records the field's name with dots between levels, for categories of events `name: seconds` and
    /// `name: events`, and in a table of traces the measured quantity with its unit.
    pub name: String,
    /// The values in the first and the second file; `None` if a file lacks the figure.
    pub values: [Option<f64>; 2],
    /// The second value divided by the first; `None` unless both are known and the first is not 0.
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

/// The size of what is kept so far, limited by [`MAX_KEPT_BYTES`].
#[derive(Default)]
pub(super) struct RetainedSize(usize);

impl RetainedSize {
    /// Counts an entry; fails if the limit is exceeded.
    pub(super) fn add<E: serde::de::Error>(&mut self, texts: &[&str]) -> Result<(), E> {
        self.0 += ENTRY_BYTES + texts.iter().map(|text| text.len()).sum::<usize>();
        if self.0 > MAX_KEPT_BYTES { Err(E::custom(TOO_MANY)) } else { Ok(()) }
    }
}
