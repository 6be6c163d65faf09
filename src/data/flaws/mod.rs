//! What is in a corpus that may not belong in a training set: texts and conformers that occur twice, atoms on one point, bonds of
//! impossible lengths, several molecules in one text, and stereo marks that are not those of the coordinates.
//!
//! Flaws of a single conformer are those of [`stats::faults`](crate::stats::faults) and of the stereo judge
//! ([`SmilesMolecule::agreement`](drift_core::chem::SmilesMolecule::agreement)). Duplicates are found in two passes over the corpus.
//! The first keeps 14 bytes of each conformer: a key of its molecule and the cell of its [spread](crate::audit::spread). Conformers
//! whose cells touch are candidates. The second pass compares these with [`Topology`](crate::audit::geometry::Topology) and the
//! molecules' graphs, as `against` does. It holds a candidate only while others of its group are still to come.
//!
//! A conformer is a duplicate if an earlier conformer of the same molecule, which is no duplicate itself, lies within the bound. So
//! no two of the conformers that stay are within the bound, and each one that goes is within it of one that stays.

mod check;
mod duplicates;
mod kind;
mod molecule_key;
mod parts;
mod place;
mod report;
mod row_judge;
mod row_key;

pub(crate) use check::{JudgePass, KeyPass};
pub use kind::{FlawCounts, FlawKind, Flaws};
pub use parts::{CheckedParts, check_shard, needing_columns};
pub(crate) use place::PlaceCounter;
pub use place::RowPlace;
pub use report::{COLUMNS, DatasetFlaws, FlawReport};
pub(crate) use report::{FlawTotals, listed};

/// The largest RMSD of duplicate conformers, in Å.
pub const DUPLICATE_ANGSTROM: f64 = 0.01;
