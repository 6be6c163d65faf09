//! RDKit's binary molecule format, as `Mol.ToBinary` writes it and as it stands inside a pickled `Mol`.
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
//! Indices take one byte in a molecule of up to 255 atoms and four in a larger one. What drift has no use for
//! (rings, groups, queries, properties) is stepped over but checked for its shape, so that a cut or damaged
//! molecule is an error and not a molecule with something missing.
//!
//! # Versions
//! Read from real bytes, written by the RDKit named: 12.1 (2021.03), 13.0 (2021.09), 13.0.2 (2022.09, 2023.03),
//! 15.0 (2023.09), 16.1 (2024.03), 16.2 (2024.09 to 2025.09), 16.3 (2026.03), 16.4 (2026.09). No release is
//! known to have written 14.0, 14.1 or 16.0: 14.0 follows the source alone; for the other two, RDKit 2026.09 and
//! this reader agree on molecules of 15.0 with the version overwritten. A minor version of 16 above 16.4 is
//! tried, as RDKit does; the tags between the parts catch a layout that has changed.
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
mod graph;
mod property;
mod query;
mod reader;
mod section;
mod tag;

pub use error::RdkitError;

/// Major, minor and patch version of the binary format, which is not RDKit's own version.
pub type Version = (i32, i32, i32);

/// The oldest version that drift reads, because it is the oldest that real bytes were at hand for. RDKit's own reader
/// makes no difference between 9.1 and 12.1.
const OLDEST: Version = (12, 1, 0);

/// The newest major version that drift reads.
const NEWEST: i32 = 16;

/// A molecule.
#[derive(Debug, Clone, PartialEq)]
pub struct RdkitMolecule {
    /// The version of the format that it was stored in.
    pub version: Version,
    /// The atoms, hydrogens included where the molecule has them as atoms.
    pub atoms: Vec<RdkitAtom>,
    /// The bonds.
    pub bonds: Vec<RdkitBond>,
    /// The conformers; each has as many positions as there are atoms.
    pub conformers: Vec<RdConformer>,
}

/// An atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RdkitAtom {
    /// The atomic number; 0 for a dummy.
    pub atomic_number: u8,
    /// The formal charge.
    pub formal_charge: i8,
    /// The mass number of a labelled isotope, else 0.
    pub isotope: u32,
    /// RDKit's `ChiralType`: 0 unspecified, 1 clockwise (`@@`), 2 counterclockwise (`@`), others as in RDKit. The
    /// sense refers to the order of the atom's bonds in [`Molecule::bonds`].
    pub chiral_tag: u8,
    /// Hydrogens that belong to the atom but are no atoms of their own.
    pub explicit_hydrogens: u8,
    /// Unpaired electrons.
    pub radical_electrons: u8,
    /// Whether the atom is aromatic.
    pub aromatic: bool,
    /// Whether no hydrogens may be assumed beyond `explicit_hydrogens`.
    pub no_implicit: bool,
    /// Whether the atom carries a query, as atoms from SMARTS do. The other fields hold all the same.
    pub has_query: bool,
    /// The atom map number.
    pub map_number: Option<i32>,
}

/// A bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RdkitBond {
    /// Index of the first atom.
    pub begin: u32,
    /// Index of the second atom.
    pub end: u32,
    /// The kind of bond.
    pub kind: BondKind,
    /// Whether the bond is aromatic, whatever its kind.
    pub aromatic: bool,
    /// RDKit's `BondStereo`: 0 none, 1 any, 2 Z, 3 E, 4 cis, 5 trans, others as in RDKit.
    pub stereo: u8,
    /// The neighbours that `stereo` refers to, the first of `begin` and the second of `end`.
    pub stereo_atoms: Option<(u32, u32)>,
}

/// The kind of a bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BondKind {
    /// A single bond.
    Single,
    /// A double bond.
    Double,
    /// A triple bond.
    Triple,
    /// An aromatic bond.
    Aromatic,
    /// A dative bond, from `begin` to `end`.
    Dative,
    /// Any other `BondType` of RDKit, by its number.
    Other(u8),
}

/// A conformer.
#[derive(Debug, Clone, PartialEq)]
pub struct RdConformer {
    /// The conformer's id.
    pub id: u32,
    /// Whether the coordinates are meant in three dimensions rather than as a drawing.
    pub is_3d: bool,
    /// One position for each atom.
    pub positions: Positions,
}

/// Positions in Angstrom, in the precision of the file. They may be anything that a float can be.
#[derive(Debug, Clone, PartialEq)]
pub enum Positions {
    /// As RDKit stores them by default.
    Single(Vec<[f32; 3]>),
    /// As it stores them when asked for `CoordsAsDouble`; up to 2021.09, when asked for any properties too.
    Double(Vec<[f64; 3]>),
}

impl Positions {
    /// The number of positions.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Single(positions) => positions.len(),
            Self::Double(positions) => positions.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The positions as doubles, which hold singles exactly.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = [f64; 3]> {
        (0..self.len()).map(|index| match self {
            Self::Single(positions) => positions[index].map(f64::from),
            Self::Double(positions) => positions[index],
        })
    }
}

/// Reads the molecule at the start of `bytes`; anything after its end is ignored, as RDKit ignores it.
///
/// # Errors
/// The bytes are of another format or version, are cut short, or contradict themselves; see [`RdkitError`].
pub fn parse(bytes: &[u8]) -> Result<RdkitMolecule, RdkitError> {
    section::molecule(&mut crate::corpus::pickle::cursor::Cursor::new(bytes), 0)
}

#[cfg(test)]
mod tests;
