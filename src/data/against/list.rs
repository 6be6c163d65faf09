//! The list of results: a line of JSON for each pair with the same geometry, and for each shared conformer without a pair.

use serde::Serialize;

use super::kind::SharedKind;

/// The position of a conformer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place<'p> {
    pub file: &'p str,
    /// From 1; `None` if records are not lines.
    pub line: Option<u64>,
    /// Its number among the readable conformers of the file, from 1.
    pub conformer: u64,
}

/// Counts the conformers of each line, record by record.
#[derive(Debug, Default)]
pub(super) struct LineRanks {
    line: Option<u64>,
    rank: u16,
}

impl LineRanks {
    /// Returns the number of earlier conformers of the next record's line; 0 if records are not lines. Which rows of a file are read
    /// does not change it.
    pub(super) fn next(&mut self, line: Option<u64>) -> u16 {
        self.rank = if line.is_some() && line == self.line { self.rank.saturating_add(1) } else { 0 };
        self.line = line;
        self.rank
    }
}

/// A line of the list.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ListedPair<'l> {
    pub file: &'l str,
    pub line: Option<u64>,
    pub conformer: u64,
    pub molecule: &'l str,
    /// What the conformer shares with any conformers of the other corpus.
    pub shared: &'l [SharedKind],
    pub same_stereo: bool,
    /// The SMILES of the molecule in the other corpus; `None` if it is not shared.
    pub other_molecule: Option<&'l str>,
    /// This and the following fields are `None` if the molecule is shared, but no geometry.
    pub other_file: Option<&'l str>,
    pub other_line: Option<u64>,
    pub other_conformer: Option<u64>,
    pub rmsd_angstrom: Option<f64>,
    /// Whether only the mirror image lies within the bound, not the conformer itself.
    pub mirror_image: bool,
}
