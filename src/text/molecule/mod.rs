//! Molecular graphs of files and of SMILES, set beside one another.

pub mod stereo;
mod structure;

pub use structure::{Structure, StructureAtom};
