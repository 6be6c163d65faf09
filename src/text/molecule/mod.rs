//! Molecular graphs of files and of SMILES, set beside one another.

mod structure;

pub use structure::{Structure, StructureAtom};
