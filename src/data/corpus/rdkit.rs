//! RDKit's binary molecule format, as written by `Mol.ToBinary` and contained in a pickled `Mol`.
//!
//! The format has no published description; this follows `Code/GraphMol/MolPickler.cpp` and `.h` and
//! `Code/RDGeneral/StreamOps.h` of RDKit. All numbers are little-endian. In order:
//!
//! | part | content |
//! | --- | --- |
//! | header | `0xDEADBEEF`, 0, version major, minor, patch, number of atoms, number of bonds (`i32` each), flags |
//! | atoms | atomic number, flags, the properties that are not default, then query, map number, label, residue |
//! | bonds | begin, end, flags, then type, direction, stereo, query, attachment points where not default |
//! | rings, substance groups, stereo groups | each behind its tag, if there are any |
//! | conformers | count, then 3D flag, id, number of atoms and coordinates, `f32` unless asked otherwise |
//! | properties | of molecule, atoms and bonds, if asked for |
//! | end | one tag |
//!
//! Indices take one byte in a molecule of up to 255 atoms and four bytes in a larger one. Parts that drift does not need (rings,
//! groups, queries, properties) are skipped, but their structure is checked. So a truncated or damaged molecule is an error, never
//! a molecule with something missing.
//!
//! # Versions
//! Tested on bytes written by the named RDKit release: 12.1 (2021.03), 13.0 (2021.09), 13.0.2 (2022.09, 2023.03), 15.0 (2023.09),
//! 16.1 (2024.03), 16.2 (2024.09 to 2025.09), 16.3 (2026.03), 16.4 (2026.09). No release is known to have written 14.0, 14.1 or
//! 16.0. The reader's rules for 14.0 follow only the source. For the other two, RDKit 2026.09 and this reader agree on molecules of
//! 15.0 with the version overwritten. A minor version of 16 above 16.4 is tried, as RDKit does; the tags between the parts detect a
//! changed layout.
//!
//! | since | change |
//! | --- | --- |
//! | 13.0 | conformers and properties carry their length |
//! | 13.0.2 | the number of rings takes four bytes |
//! | 14.0 | property tables are counted in two bytes; a few properties are packed |
//! | 14.1 | stereo groups have an id |
//! | 16.0 | the kind of ring search has its own tag |
//! | 16.1 | stereo groups list bonds |
//! | 16.3 | residues of another kind than PDB have their own layout |
//! | 16.4 | more than 255 bonds also make indices wide |

mod atom;
mod bond;
mod error;
mod property;
mod query;
mod reader;
mod section;
mod tag;

pub use error::RdkitError;

use drift_core::chem::Graph;

/// The major, minor and patch version of the binary format, which differs from the version of RDKit.
pub type Version = (i32, i32, i32);

/// The oldest version that drift reads, because it is the oldest for which test data was available. RDKit's own reader treats 9.1
/// to 12.1 alike.
const OLDEST: Version = (12, 1, 0);

/// The newest major version that drift reads.
const NEWEST: i32 = 16;

/// A molecule as RDKit stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct RdkitMolecule {
    /// The format version in which it was stored.
    pub version: Version,
    /// The atoms, including hydrogens that are explicit atoms of the molecule, and the bonds, in the order of the molecule. An
    /// atom's query is dropped; the atom itself is kept.
    pub graph: Graph,
    /// The conformers; each has one position per atom.
    pub conformers: Vec<RdConformer>,
}

/// A conformer.
#[derive(Debug, Clone, PartialEq)]
pub struct RdConformer {
    /// The conformer's id.
    pub id: u32,
    /// Whether the coordinates are three-dimensional rather than a 2D drawing.
    pub is_3d: bool,
    /// One position per atom.
    pub positions: Positions,
}

/// Positions in Å, in the precision of the file. They may have any floating-point value, including infinities and NaN.
#[derive(Debug, Clone, PartialEq)]
pub enum Positions {
    /// RDKit's default.
    Single(Vec<[f32; 3]>),
    /// RDKit's format with the option `CoordsAsDouble`; up to 2021.09, also when any properties were requested.
    Double(Vec<[f64; 3]>),
}

/// Reads the molecule at the start of `bytes`. As in RDKit, bytes after its end are ignored.
///
/// # Errors
/// If the bytes are of another format or version, are truncated, or contradict themselves.
pub fn parse(bytes: &[u8]) -> Result<RdkitMolecule, RdkitError> {
    section::molecule(&mut crate::corpus::pickle::cursor::Cursor::new(bytes), 0)
}

#[cfg(test)]
mod tests;
