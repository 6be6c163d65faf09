//! Which molecules, and which exact geometries, of one corpus stand in another: training sets against test sets.
//!
//! The other corpus, the smaller one, is held in memory ([`Other`]): a molecule by a key that every spelling of its SMILES has
//! ([`MolecularIdentity`](drift_core::chem::MolecularIdentity)), a conformer as the whole numbers of its encoding and three lengths. The corpus that is
//! looked through is streamed: nothing of it is kept but counts, and which of the other's conformers were found.
//!
//! Two conformers are one geometry if their molecules are the same graph and their least deviation over symmetric orders of
//! atoms, rotations and translations ([`Topology::least_rmsd`](crate::audit::geometry::Topology::least_rmsd), which `audit` asks too) is within a bound. No
//! pair is missed: which pairs are measured is told by the [`spread`], which deviates no more than the atoms do.

mod compare;
mod finder;
mod found;
mod list;
mod other;
mod report;
mod run;
mod shard;
mod spelling;
pub mod spread;

pub use found::{AgainstCounts, FoundInOther};
pub use other::{Other, OtherSummary};
pub use report::{AgainstReport, SCHEMA};
pub use run::{AgainstPlan, PutList, against};
pub use shard::{against_shard, merge_against};

/// The bound of the deviation of one geometry, in Å, unless another is asked for.
///
/// Cutting a coordinate to four decimals moves it by less than 10⁻⁴ Å, an atom by less than √3·10⁻⁴ Å. Two texts of one geometry, each cut
/// in a frame of its own, so deviate by less than 2·√3·10⁻⁴ = 3.5·10⁻⁴ Å; the rest is room for files of single precision and for rounding.
pub const BOUND_ANGSTROM: f64 = 1e-3;
