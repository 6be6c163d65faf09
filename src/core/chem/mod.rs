//! Molecules: one [`Molecule`] type for all readers, one sanitisation, one perception of aromaticity, one perception of stereo from
//! coordinates, and one graph matcher.
//!
//! - [`Graph`] holds what a text or a file says. [`Graph::parse`] follows the grammar of RDKit's parser, which is stricter than
//!   OpenSMILES in some places (`C(1CC1)`, `C()C`) and laxer in others (`C%(5)CC5`). Files are read into the same type.
//! - [`Molecule`] is the graph after RDKit's sanitisation: charges of nitro groups and similar groups, valences, Kekulé structures.
//!   [`Molecule::aromatic_bonds`] perceives aromaticity, [`SanitizedMolecule`] the properties that a molecule's shape depends on.
//! - [`SmilesReading`] has both for a SMILES, which is parsed once for all uses.
//! - [`same_graph`] compares two molecules; [`MolecularIdentity`] compares many with many, with their stereo.
//!   [`SmilesMolecule::pair`] finds the orders of a file's atoms that match a SMILES, and [`SmilesMolecule::order`] the first of
//!   them that preserves the stereo of the coordinates ([`stereo`]). [`Mismatch`] says why there is none.
//! - [`Isotopes`] is the rule for isotope labels that all of them follow.
//!
//! `docs/molecules.md` lists the parts of RDKit that are not covered.

mod aromaticity;
mod blossom;
mod brackets;
mod cycles;
mod distances;
mod electrons;
pub mod elements;
mod equivalence;
mod graph;
mod handedness;
mod huckel;
mod hydrogens;
mod identity;
mod isotopes;
mod kekule;
pub(crate) mod labelled;
mod limit;
mod mapping;
mod mismatch;
mod molecule;
mod open_stereo;
mod parse;
mod polyhedra;
mod reading;
mod rings;
mod rotors;
mod sanitized;
mod scaffold;
pub(crate) mod search;
mod spelling;
pub mod stereo;
mod stereogenic;
pub mod symmetry;
mod valence;
mod valences;
mod write;

pub use equivalence::{
    SameGraph, atoms_in_order, graph_key, same_canonical_smiles, same_graph, same_molecule,
};
pub use graph::{Atom, Bond, BondsOfAtom, Chirality, Direction, Graph, Order, SmilesProblem};
pub use identity::MolecularIdentity;
pub use isotopes::Isotopes;
pub use limit::{AtomLimit, MAX_HEAVY_ATOMS};
pub use mapping::{AtomMapping, SmilesMolecule, StereoAgreement};
pub use mismatch::{Mismatch, StereoDifference};
pub use molecule::{Molecule, SmilesError};
pub use polyhedra::PolyhedralMark;
pub use reading::SmilesReading;
pub use sanitized::{Hybridisation, SanitizedMolecule};
pub use scaffold::Scaffold;
pub use search::IdenticalAtoms;
pub use spelling::{SmilesNotes, foreign};
pub use write::without_needless_atoms;

pub(crate) use molecule::READ;
