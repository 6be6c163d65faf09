//! The molecules for which texts are generated, each with its reference conformers.
//!
//! [`Molecules`] reads them from a corpus or a file of SMILES. [`PromptMolecule`] is one of them; isomers that a file pools share a
//! [`PromptPool`]. [`Molecules::with_references`] assigns the conformers of another corpus to them.

mod counts;
mod molecule;
mod molecules;
mod pools;
mod reference_set;
mod references;

pub use counts::ReferenceCounts;
pub use molecule::{PromptMolecule, PromptPool};
pub use molecules::{CorpusChoice, Molecules};
