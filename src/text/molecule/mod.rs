//! Molecular graphs of files, in the order of a SMILES.
//!
//! [`Structure`] is what a file says of a molecule. [`SmilesMolecule::pair`] finds the orders of its atoms that are those of a SMILES,
//! [`SmilesMolecule::order`] the first of them that keeps the stereo of the coordinates ([`stereo`]). [`Mismatch`] says why there is none.

mod labelled;
mod mismatch;
mod open;
mod pairing;
mod search;
pub mod stereo;
mod structure;

pub use mismatch::{Mismatch, StereoDifference};
pub use pairing::{Pairing, SmilesMolecule};
pub use structure::{Structure, StructureAtom};
