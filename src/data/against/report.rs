//! What a comparison came to.

use serde::Serialize;

use super::found::{AgainstCounts, FoundInOther};
use super::other::OtherSummary;
use crate::corpus::{ReadSummary, Skipped};
use drift_core::encoding::Encoding;
use drift_core::job::Provenance;

/// The schema of [`AgainstReport`].
pub const SCHEMA: &str = "drift.against/1";

/// Which molecules and geometries of a corpus stand in another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgainstReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// How coordinates were read.
    pub encoding: Encoding,
    /// What is one geometry at most, in Å.
    pub bound_angstrom: f64,
    /// Conformers that were looked through.
    pub conformers: u64,
    /// Molecules that both have, stereo aside.
    pub molecules_shared: u64,
    /// Molecules that both have, with their stereo as it is written.
    pub isomers_shared: u64,
    /// Conformers and pairs.
    #[serde(flatten)]
    pub counts: AgainstCounts,
    /// Conformers of the other corpus whose geometry was met.
    pub other_conformers_found: u64,
    /// The other corpus.
    pub other: OtherSummary,
    /// How many records could not be read.
    pub skipped: u64,
    /// The first of them.
    pub skipped_records: Vec<Skipped>,
    /// Conformers whose atoms are in the order of their file, so that they have no molecule.
    pub in_file_order: u64,
    /// The first of them, and why.
    pub in_file_order_records: Vec<Skipped>,
    /// drift's version, and the inputs by name and hash; those of the other corpus stand under `other`.
    pub provenance: Provenance,
}

impl AgainstReport {
    pub(super) fn new(
        (encoding, bound_angstrom): (Encoding, f64),
        read: ReadSummary,
        found: &FoundInOther,
        other: OtherSummary,
    ) -> Self {
        AgainstReport {
            schema: SCHEMA,
            encoding,
            bound_angstrom,
            conformers: read.conformers,
            molecules_shared: found.molecules.len() as u64,
            isomers_shared: found.isomers.len() as u64,
            counts: found.counts,
            other_conformers_found: found.conformers.len() as u64,
            other,
            skipped: read.skipped,
            skipped_records: read.skipped_records,
            in_file_order: read.in_file_order,
            in_file_order_records: read.in_file_order_records,
            provenance: Provenance::from_inputs(read.inputs),
        }
    }
}
