//! The list of what was found: a line of JSON for each pair of one geometry, and for each conformer of a molecule that both have.

use serde::Serialize;

/// Where a conformer stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place<'p> {
    pub file: &'p str,
    /// From 1; none where records are no lines.
    pub line: Option<u64>,
    /// Its number among the conformers of the file that could be read, from 1.
    pub conformer: u64,
}

/// A line of the list.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ListedPair<'l> {
    pub file: &'l str,
    pub line: Option<u64>,
    pub conformer: u64,
    pub molecule: &'l str,
    pub same_stereo: bool,
    /// The molecule as the other corpus names it.
    pub other_molecule: &'l str,
    /// None where the molecules are the same and no geometry is.
    pub other_file: Option<&'l str>,
    pub other_line: Option<u64>,
    pub other_conformer: Option<u64>,
    pub rmsd_angstrom: Option<f64>,
    /// Whether it is the mirror image that lies within the bound, and the conformer itself does not.
    pub mirror_image: bool,
}
