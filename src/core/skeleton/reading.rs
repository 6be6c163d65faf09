//! What was read of a text, and what is wrong with it.

use std::collections::{BTreeMap, HashSet};

/// What may be wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The text before the marker has no marker, or the marker stands twice.
    Marker,
    /// Something else stands where the skeleton has a text or a slot.
    Format,
    /// A number is zero with a minus that its slot does not have.
    MinusZero,
    /// A number is out of its range.
    Range,
    /// The items have other words than the prompt's, in other proportions.
    Composition,
    /// The number of items is another one than the prompt's.
    Count,
    /// The items stand in another order than the prompt's.
    Order,
    /// The text ends too early.
    Cut,
    /// The text goes on behind its end.
    Trailing,
}

crate::named!(FaultKind {
    Marker: "marker",
    Format: "format",
    MinusZero: "minus zero",
    Range: "out of range",
    Composition: "composition",
    Count: "number of items",
    Order: "order",
    Cut: "cut",
    Trailing: "text behind the end",
});

/// Something that is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fault {
    /// What kind it is.
    pub kind: FaultKind,
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// What is wrong, in a sentence.
    pub problem: String,
}

/// The values of an item.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadItem {
    /// Its word; empty for items without words.
    pub word: String,
    /// The texts of its slots, one after another with spaces between.
    pub texts: String,
}

/// What was read of a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The first fault of each kind, in the order of the text.
    pub faults: Vec<Fault>,
    /// The number of faults by kind.
    pub counts: BTreeMap<FaultKind, usize>,
    /// The values of numbers in the order of the text, with the index of their slot.
    pub values: Vec<(usize, f64)>,
    /// By index of the skeleton's items, those of the text.
    pub items: Vec<Vec<ReadItem>>,
    /// Where the text begins that the skeleton describes: behind its marker, in bytes.
    pub start: usize,
    /// Whether slots were skipped behind a fault, so that values are missing.
    pub has_gaps: bool,
}

impl Reading {
    /// Returns whether the text is one of the skeleton.
    pub fn passed(&self) -> bool {
        self.faults.is_empty()
    }

    /// Returns the number of items that repeat one before them, in their word and all of their slots.
    pub fn repeated_items(&self) -> usize {
        self.items.iter().map(|items| repeats(items)).sum()
    }
}

/// Returns the number of items that repeat one before them.
fn repeats(items: &[ReadItem]) -> usize {
    let mut seen = HashSet::new();
    items.iter().filter(|item| !item.texts.is_empty() && !seen.insert((&item.word, &item.texts))).count()
}
