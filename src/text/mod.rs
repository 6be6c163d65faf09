//! Enriched SMILES: a SMILES in which each atom is followed by a block `<x,y,z>`.
//!
//! - [`parse`] splits a text into its *skeleton* (the text with every block emptied to `<>`) and its coordinates;
//!   [`write()`] is the inverse.
//! - [`elements`] are symbols and numbers, [`number`] holds the fixed-point arithmetic of coordinates, [`skeleton`] what can be done without coordinates,
//!   [`graph`] the comparison of molecular graphs, [`smiles`] the reading of SMILES as RDKit reads them.
//!
//! The format is that of 3DMolGen: heavy atoms only, bare atoms bracketed, four decimals truncated toward zero.

pub mod elements;
pub mod enriched;
pub mod graph;
pub mod number;
pub mod skeleton;
pub mod smiles;
pub mod spelling;

pub use enriched::{Enriched, TextError, Written, append, parse, parse_block, write};
pub use graph::{SameGraph, same_graph};

pub use number::Fixed;

use serde::{Deserialize, Serialize};

/// How decimals are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Exactly four decimals: `0.5000`.
    Fixed,
    /// Trailing zeros, and a trailing point, removed: `0.5`.
    Stripped,
}

impl Dialect {
    /// Both dialects, in the order of reports.
    pub const ALL: [Dialect; 2] = [Dialect::Fixed, Dialect::Stripped];

    /// `fixed` or `stripped`.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Fixed => "fixed",
            Dialect::Stripped => "stripped",
        }
    }
}

/// The tag before a conformer's text.
pub const CONFORMER_OPEN: &str = "[CONFORMER]";
/// The tag after a conformer's text.
pub const CONFORMER_CLOSE: &str = "[/CONFORMER]";
/// The tag before a prompt's SMILES.
pub const SMILES_OPEN: &str = "[SMILES]";
/// The tag after a prompt's SMILES.
pub const SMILES_CLOSE: &str = "[/SMILES]";

/// `text` between the conformer tags, as a model writes it.
pub fn tagged(text: &str) -> String {
    format!("{CONFORMER_OPEN}{text}{CONFORMER_CLOSE}")
}
