//! Finds molecules, and exact geometries, of one corpus in another: for example training data in test sets.
//!
//! Texts, InChIKeys and Murcko scaffolds are looked up as well ([`SharedKind`]).
//!
//! The other corpus, the smaller one, is held in memory ([`OtherCorpus`]). A molecule is stored by a key that every spelling of its
//! SMILES has ([`MolecularIdentity`](drift_core::chem::MolecularIdentity)), a conformer as the integers of its encoding and three
//! lengths. The first corpus is streamed: only counts are kept, and which conformers of the other corpus were found.
//!
//! Two conformers have the same geometry if their molecules are the same graph and their RMSD is within a bound. The RMSD is the
//! least one over symmetric atom orders, rotations and translations
//! ([`Topology::least_rmsd`](crate::audit::geometry::Topology::least_rmsd), which `audit` uses too). No pair is missed: the
//! [`spread`](crate::audit::spread) selects the pairs to measure, and spreads differ by no more than the RMSD.

mod compare;
mod datasets;
mod finder;
mod found;
mod frames;
mod inchikey;
mod keys;
mod kind;
mod layouts;
mod list;
mod other;
mod other_reader;
mod plan;
mod record;
mod report;
mod run;
mod shard;
mod spelling;
mod subsets;

pub use datasets::{DatasetShare, Datasets, SubsetShare};
pub use found::{AgainstCounts, FoundInOther};
pub use kind::{SharedKind, SharedRows};
pub use other::{OtherCorpus, OtherSummary};
pub use plan::AgainstPlan;
pub(crate) use record::text_fingerprint;
pub use report::{AgainstReport, SCHEMA};
pub use run::{AgainstOutput, PutList, against};
pub use shard::{against_shard, merge_against};
pub(crate) use spelling::{Fingerprint, fingerprint};

/// The default bound on the RMSD of equal geometries, in Å.
///
/// Truncating a coordinate to four decimals moves it by less than 10⁻⁴ Å, and an atom by less than √3·10⁻⁴ Å. So two texts of one
/// geometry, each truncated in its own frame, differ by less than 2·√3·10⁻⁴ = 3.5·10⁻⁴ Å. The rest of the bound leaves room for
/// files in single precision and for rounding.
pub const BOUND_ANGSTROM: f64 = 1e-3;
