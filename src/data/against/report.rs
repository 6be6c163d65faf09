//! The report of a comparison.

use serde::Serialize;

use super::datasets::DatasetShare;
use super::found::{AgainstCounts, FoundInOther};
use super::kind::SharedKind;
use super::other::OtherSummary;
use super::plan::AgainstPlan;
use crate::corpus::{ReadSummary, SkippedRecord};
use drift_core::Encoding;
use drift_core::chem::Isotopes;
use drift_core::job::Provenance;

/// The schema of [`AgainstReport`].
pub const SCHEMA: &str = "drift.against/1";

/// Which molecules and geometries of one corpus occur in another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgainstReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The encoding in which coordinates were read.
    pub encoding: Encoding,
    /// The largest RMSD of equal geometries, in Å.
    pub bound_angstrom: f64,
    /// Whether isotope labels told molecules and their atoms apart.
    pub isotopes: Isotopes,
    /// The number of conformers in the streamed corpus.
    pub conformers: u64,
    /// The number of molecules in both corpora, ignoring stereo.
    pub molecules_shared: u64,
    /// The number of molecules in both corpora, with their stereo as written.
    pub isomers_shared: u64,
    /// The number of Murcko scaffolds in both corpora.
    pub scaffolds_shared: u64,
    /// What makes a row a shared one, which is listed and dropped.
    pub shared_by: Vec<SharedKind>,
    /// Counts of conformers and pairs.
    #[serde(flatten)]
    pub counts: AgainstCounts,
    /// What is shared by data set of the streamed corpus and test subset of the other one. Empty without these columns.
    pub datasets: Vec<DatasetShare>,
    /// Whether there are more than 1,000 data sets, so that they are not told apart.
    pub has_too_many_datasets: bool,
    /// The number of conformers of the other corpus whose geometry occurs in the streamed one.
    pub other_conformers_found: u64,
    /// The summary of the other corpus.
    pub other: OtherSummary,
    /// Whether it was merged from shards of which some work is missing; the figures are then for the rest.
    pub interrupted: bool,
    /// The number of rows that were not asked for.
    pub left_out: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
    /// The first of these records.
    pub skipped_records: Vec<SkippedRecord>,
    /// The number of conformers with atoms in file order, which have no molecule to compare.
    pub in_file_order: u64,
    /// The first of these conformers, with reasons.
    pub in_file_order_records: Vec<SkippedRecord>,
    /// The version of drift, and the inputs by name and hash. The inputs of the other corpus are listed under `other`.
    pub provenance: Provenance,
}

impl AgainstReport {
    pub(super) fn new(
        plan: &AgainstPlan,
        read: ReadSummary,
        found: &FoundInOther,
        other: OtherSummary,
    ) -> Self {
        AgainstReport {
            schema: SCHEMA,
            encoding: plan.options.reading.encoding,
            bound_angstrom: plan.bound_angstrom,
            isotopes: plan.isotopes,
            conformers: read.conformers,
            molecules_shared: found.molecules.len() as u64,
            isomers_shared: found.isomers.len() as u64,
            scaffolds_shared: found.scaffolds.len() as u64,
            shared_by: plan.shared_by.clone(),
            counts: found.counts,
            datasets: found.datasets.shares(&other.test_subsets),
            has_too_many_datasets: found.datasets.is_overfull(),
            other_conformers_found: found.conformers.len() as u64,
            other,
            interrupted: read.is_partial,
            left_out: read.left_out,
            skipped: read.skipped,
            skipped_records: read.skipped_records,
            in_file_order: read.in_file_order,
            in_file_order_records: read.in_file_order_records,
            provenance: Provenance::from_inputs(read.inputs),
        }
    }
}
