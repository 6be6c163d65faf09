//! The settings of a comparison.

use std::path::PathBuf;

use super::kind::SharedKind;
use crate::corpus::ReadOptions;
use drift_core::chem::Isotopes;

/// The settings of a comparison.
#[derive(Debug, Clone)]
pub struct AgainstPlan {
    /// The streamed corpus: files and folders.
    pub inputs: Vec<PathBuf>,
    /// The corpus to hold in memory.
    pub others: Vec<PathBuf>,
    /// The options for reading both; those for rows apply to the inputs alone.
    pub options: ReadOptions,
    /// The largest RMSD of equal geometries, in Å.
    pub bound_angstrom: f64,
    /// Whether isotope labels tell molecules and their atoms apart.
    pub isotopes: Isotopes,
    /// Whether a list is written.
    pub is_listed: bool,
    /// What makes a row a shared one, which is listed and dropped.
    pub shared_by: Vec<SharedKind>,
    /// Whether the rows that share nothing of this are written.
    pub keeps_rows: bool,
}
