//! Enriched SMILES: a SMILES in which each atom is followed by a slot with its coordinates, `<x,y,z>`.
//!
//! - [`parse`] splits a text into its *skeleton* (the text with every slot replaced by `<>`, whatever its brackets) and its
//!   coordinates; [`write()`] is the inverse. An [`Encoding`](crate::encoding::Encoding) defines the form of slots.
//! - [`skeleton`] holds operations without coordinates. The molecule of a skeleton is the subject of [`crate::chem`].
//! - [`holds`] decides which strings occur in no text.
//! - [`partition`] classifies slots by the skeleton; [`size`] is the table of size classes.
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

/// `text` between the conformer tags, as a model generates it.
pub fn tagged(text: &str) -> String {
    format!("{CONFORMER_OPEN}{text}{CONFORMER_CLOSE}")
}
