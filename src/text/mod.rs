//! Enriched SMILES: a SMILES in which each atom is followed by a block `<x,y,z>`.
//!
//! - [`parse`] splits a text into its *skeleton* (the text with every block emptied to `<>`) and its coordinates;
//!   [`write()`] is the inverse.
//! - [`block`] is the grammar of what stands between `<` and `>`, [`number`] of the numbers in it, in every [`Dialect`].
//! - [`number`] holds the fixed-point arithmetic of coordinates, [`skeleton`] what can be done without coordinates, [`spelling`] whether a
//!   SMILES is one that RDKit would write. What its molecule is, [`crate::chem`] knows.
//!
//! The format is that of 3DMolGen: heavy atoms only, bare atoms bracketed, decimals (four, by default)
//! truncated toward zero.

pub mod block;
pub mod dialect;
pub mod enriched;
pub mod number;
pub mod skeleton;
pub mod spelling;

pub use block::{is_three_numbers, parse_block};
pub use dialect::{AskedDialect, Dialect, Fixed, Precision, Reading, Separator, TrailingZeros, Written};
pub use enriched::{Enriched, TextError, append, parse, write};
pub use number::scan_prefix;

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
