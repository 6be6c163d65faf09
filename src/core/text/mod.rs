//! Enriched SMILES: a SMILES in which each atom is followed by a slot with its coordinates, `<x,y,z>`.
//!
//! - [`parse`] splits a text into its *skeleton* (the text with every slot emptied to `<>`, whatever opens and closes it) and its
//!   coordinates; [`write()`] is the inverse. How slots are written is said by an [`Encoding`](crate::encoding::Encoding).
//! - [`skeleton`] holds what can be done without coordinates. What its molecule is, [`crate::chem`] knows.
//! - [`holds`] says which strings stand in no text.
//! - [`partition`] sorts slots by what the skeleton says of them; [`size`] is the table of size classes.
//!
//! The format is that of 3DMolGen: heavy atoms only, bare atoms bracketed, decimals (four, by default)
//! truncated toward zero.

pub mod enriched;
pub mod holds;
pub mod partition;
pub mod size;
pub mod skeleton;

pub use enriched::{Enriched, TextError, append, parse, write};

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
