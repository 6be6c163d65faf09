//! What was found, as counts and sets that merge.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Conformers of the corpus that is looked through, and pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgainstCounts {
    /// Conformers that have no molecule to be compared: without a SMILES, or too large.
    pub rows_not_compared: u64,
    /// Conformers of molecules that both corpora have, stereo aside.
    pub rows_of_shared_molecules: u64,
    /// Those among them whose stereo, as it is written, a conformer of the other corpus has too.
    pub rows_of_shared_isomers: u64,
    /// Conformers with a geometry of the other corpus.
    pub rows_with_duplicate: u64,
    /// Conformers without one whose mirror image has.
    pub rows_with_mirror_image: u64,
    /// Conformers of shared molecules whose geometry was not compared: too much symmetry.
    pub rows_without_geometry: u64,
    /// Pairs of one geometry.
    pub pairs: u64,
    /// Pairs of mirror images of which the conformers themselves are not one geometry.
    pub mirror_pairs: u64,
    /// Pairs beyond the bound whose search for a smaller deviation did not end.
    pub rmsd_upper_bounds: u64,
}

impl AgainstCounts {
    /// Adds what was counted elsewhere.
    pub fn merge(&mut self, other: &AgainstCounts) {
        self.rows_not_compared += other.rows_not_compared;
        self.rows_of_shared_molecules += other.rows_of_shared_molecules;
        self.rows_of_shared_isomers += other.rows_of_shared_isomers;
        self.rows_with_duplicate += other.rows_with_duplicate;
        self.rows_with_mirror_image += other.rows_with_mirror_image;
        self.rows_without_geometry += other.rows_without_geometry;
        self.pairs += other.pairs;
        self.mirror_pairs += other.mirror_pairs;
        self.rmsd_upper_bounds += other.rmsd_upper_bounds;
    }
}

/// What was found of the other corpus.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FoundInOther {
    /// What was counted.
    pub counts: AgainstCounts,
    /// The other's molecules that were met, by number.
    pub molecules: BTreeSet<u32>,
    /// Its isomers, by molecule and number.
    pub isomers: BTreeSet<(u32, u32)>,
    /// Its conformers that were met as geometries, by number.
    pub conformers: BTreeSet<u32>,
}

impl FoundInOther {
    /// Adds what was found elsewhere.
    pub fn merge(&mut self, other: &FoundInOther) {
        self.counts.merge(&other.counts);
        self.molecules.extend(&other.molecules);
        self.isomers.extend(&other.isomers);
        self.conformers.extend(&other.conformers);
    }
}
