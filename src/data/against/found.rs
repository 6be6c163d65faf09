//! Results as counts and sets that can be merged.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::datasets::Datasets;

drift_core::counters! {
    /// Counts of conformers of the streamed corpus, and of pairs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct AgainstCounts {
        /// Conformers whose molecule cannot be compared: without a SMILES, or too large.
        pub rows_not_compared: u64,
        /// Conformers whose text occurs in the other corpus.
        pub rows_with_shared_text: u64,
        /// Conformers with an InChIKey in the column `inchikey`.
        pub rows_with_inchikey: u64,
        /// Conformers whose InChIKey occurs in the other corpus.
        pub rows_of_shared_inchikeys: u64,
        /// Conformers of whose InChIKey the first block occurs in the other corpus.
        pub rows_of_shared_inchikey_blocks: u64,
        /// Conformers whose Murcko scaffold occurs in the other corpus.
        pub rows_of_shared_scaffolds: u64,
        /// Conformers that share something by which rows count as shared.
        pub rows_shared: u64,
        /// Rows that were written because none of their conformers is shared.
        pub rows_kept: u64,
        /// Rows that were not written because a conformer of theirs is shared.
        pub rows_dropped: u64,
        /// Conformers of molecules that both corpora have, ignoring stereo.
        pub rows_of_shared_molecules: u64,
        /// Those among them whose stereo, as written, occurs in the other corpus too.
        pub rows_of_shared_isomers: u64,
        /// Conformers whose geometry occurs in the other corpus.
        pub rows_with_duplicate: u64,
        /// Conformers whose geometry does not occur there, but whose mirror image does.
        pub rows_with_mirror_image: u64,
        /// Conformers of shared molecules whose geometry was not compared because of too much symmetry.
        pub rows_without_geometry: u64,
        /// Pairs of conformers with the same geometry.
        pub pairs: u64,
        /// Pairs of mirror images that do not have the same geometry themselves.
        pub mirror_pairs: u64,
        /// Pairs beyond the bound for which the search for a smaller RMSD was cut off.
        pub rmsd_upper_bounds: u64,
    }
}

/// All results about the other corpus.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FoundInOther {
    /// The counts.
    pub counts: AgainstCounts,
    /// The molecules of the other corpus that occur in the streamed one, by number.
    pub molecules: BTreeSet<u32>,
    /// Its isomers that occur, by molecule and number.
    pub isomers: BTreeSet<(u32, u32)>,
    /// Its conformers whose geometry occurs, by number.
    pub conformers: BTreeSet<u32>,
    /// Its scaffolds that occur, by number.
    pub scaffolds: BTreeSet<u32>,
    /// What is shared, by data set and test subset.
    pub datasets: Datasets,
}

impl FoundInOther {
    /// Adds other results.
    pub fn merge(&mut self, other: &FoundInOther) {
        self.counts.merge(&other.counts);
        self.molecules.extend(&other.molecules);
        self.isomers.extend(&other.isomers);
        self.conformers.extend(&other.conformers);
        self.scaffolds.extend(&other.scaffolds);
        self.datasets.merge(&other.datasets);
    }
}
