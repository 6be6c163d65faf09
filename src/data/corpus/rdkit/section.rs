//! Reads the parts of a molecule in their order (`_depickle`).

use super::reader::{Reader, Result};
use super::{NEWEST, OLDEST, Positions, RdConformer, RdkitError, RdkitMolecule, Version, tag};
use crate::corpus::pickle::cursor::Cursor;
use drift_core::chem::Graph;

/// `MolPickler::endianId`.
const MARK: u32 = 0xDEAD_BEEF;

/// Reads a molecule that is nested in `depth` other molecules.
pub(super) fn molecule(cursor: &mut Cursor<'_>, depth: usize) -> Result<RdkitMolecule> {
    let version = header(cursor)?;
    let mut reader = Reader { cursor, version, wide: false, depth };
    let atom_count = reader.count()?;
    let bond_count = reader.count()?;
    reader.wide = atom_count > 255 || reader.since(16, 4, 0) && bond_count > 255;
    // The flag that conformers follow; their own tag states it again.
    reader.u8()?;

    reader.expect(tag::BEGIN_ATOM, "the atoms do not begin")?;
    // An atom takes at least six bytes and a bond three.
    let mut atoms = Vec::with_capacity(reader.capacity(atom_count, 6));
    for _ in 0..atom_count {
        atoms.push(reader.atom()?);
    }
    reader.expect(tag::BEGIN_BOND, "the bonds do not begin")?;
    let mut bonds = Vec::with_capacity(reader.capacity(bond_count, 3));
    for _ in 0..bond_count {
        bonds.push(reader.bond(atom_count)?);
    }
    reader.rings()?;
    reader.substance_groups()?;
    reader.stereo_groups()?;
    let conformers = reader.conformers(atom_count)?;
    reader.properties(atom_count, bond_count)?;
    Ok(RdkitMolecule { version, graph: Graph::of_file(atoms, bonds), conformers })
}

fn header(cursor: &mut Cursor<'_>) -> Result<Version> {
    let refused = |problem: &str| Err(RdkitError(problem.to_owned()));
    if cursor.remaining() >= 4 && cursor.clone().u32() != Ok(MARK) {
        return refused("not an RDKit molecule: the bytes do not begin with RDKit's mark 0xDEADBEEF");
    }
    cursor.u32()?;
    if cursor.u32()? != 0 {
        return refused("RDKit molecule is malformed at byte 4: the version is missing");
    }
    let version = (cursor.i32()?, cursor.i32()?, cursor.i32()?);
    if version < OLDEST || version.0 > NEWEST {
        let (own, oldest) = (format!("{}.{}", version.0, version.1), format!("{}.{}", OLDEST.0, OLDEST.1));
        return refused(&format!("RDKit binary version {own}; drift reads {oldest} to {NEWEST}"));
    }
    Ok(version)
}

impl Reader<'_, '_> {
    /// Skips the rings.
    fn rings(&mut self) -> Result<()> {
        let begins = [tag::BEGIN_SSSR, tag::BEGIN_SYMM_SSSR, tag::BEGIN_FAST_FIND, tag::BEGIN_FIND_OTHER];
        if !self.cursor.peek().is_some_and(|tag| begins.contains(&tag)) {
            return Ok(());
        }
        self.u8()?;
        let count = if self.since(13, 0, 2) { self.cursor.u32()? } else { self.index()? };
        for _ in 0..count {
            self.skip_indices()?;
        }
        Ok(())
    }

    /// Skips the substance groups of mol files (`_getSubstanceGroupFromPickle`).
    fn substance_groups(&mut self) -> Result<()> {
        if !self.accept(tag::BEGIN_SGROUP)? {
            return Ok(());
        }
        for _ in 0..self.count()? {
            let superatom = self.property_table(b"TYPE")? == Some(b"SUP".as_slice());
            // Atoms, parent atoms, bonds.
            for _ in 0..3 {
                self.skip_indices()?;
            }
            let brackets = self.index()?;
            self.skip(brackets as usize, 3 * 3 * 4)?;
            for _ in 0..self.index()? {
                self.index()?;
                if superatom {
                    self.skip(3, 4)?;
                }
            }
            for _ in 0..self.index()? {
                self.index()?;
                self.skip(1, 4)?;
                self.string()?;
            }
        }
        Ok(())
    }

    /// Skips the groups of enhanced stereochemistry (`_depickleStereo`).
    fn stereo_groups(&mut self) -> Result<()> {
        if !self.accept(tag::BEGIN_STEREO_GROUP)? {
            return Ok(());
        }
        for _ in 0..self.index()? {
            let absolute = self.index()? == 0;
            if self.since(14, 1, 0) && !absolute {
                self.index()?;
            }
            self.skip_indices()?;
            if self.since(16, 0, 1) {
                self.skip_indices()?;
            }
        }
        Ok(())
    }

    fn conformers(&mut self, atom_count: usize) -> Result<Vec<RdConformer>> {
        let double = self.accept(tag::BEGIN_CONFS_DOUBLE)?;
        if !double && !self.accept(tag::BEGIN_CONFS)? {
            return Ok(Vec::new());
        }
        let framed = self.since(13, 0, 0);
        if framed {
            self.count()?;
        }
        let count = self.count()?;
        // A conformer takes at least six bytes.
        let mut conformers = Vec::with_capacity(self.capacity(count, 6));
        for _ in 0..count {
            conformers.push(self.conformer(atom_count, double)?);
        }
        if self.accept(tag::BEGIN_CONF_PROPS)? {
            if framed {
                self.skip_frame()?;
            } else {
                self.property_tables(count)?;
            }
        }
        Ok(conformers)
    }

    fn conformer(&mut self, atom_count: usize, double: bool) -> Result<RdConformer> {
        let is_3d = self.u8()? != 0;
        let id = self.cursor.u32()?;
        if self.index()? as usize != atom_count {
            return Err(self.malformed("a conformer with another number of atoms than the molecule"));
        }
        let positions = if double {
            let bytes = self.cursor.take_items(atom_count as u64, 24)?;
            Positions::Double(triples(bytes, f64::from_le_bytes))
        } else {
            let bytes = self.cursor.take_items(atom_count as u64, 12)?;
            Positions::Single(triples(bytes, f32::from_le_bytes))
        };
        Ok(RdConformer { id, is_3d, positions })
    }

    /// Skips the properties of the molecule, its atoms and bonds, up to the end of the molecule.
    fn properties(&mut self, atom_count: usize, bond_count: usize) -> Result<()> {
        let framed = self.since(13, 0, 0);
        loop {
            let count = match self.u8()? {
                tag::END_MOL => return Ok(()),
                tag::BEGIN_PROPS => 1,
                tag::BEGIN_ATOM_PROPS => atom_count,
                tag::BEGIN_BOND_PROPS => bond_count,
                _ => return Err(self.malformed("an unknown part after the conformers")),
            };
            if framed {
                self.skip_frame()?;
            } else {
                self.property_tables(count)?;
            }
            self.expect(tag::END_PROPS, "properties do not end")?;
        }
    }

    fn property_tables(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.property_table(b"")?;
        }
        Ok(())
    }
}

/// Decodes numbers of `N` bytes each into triples of coordinates.
fn triples<const N: usize, T>(bytes: &[u8], number: fn([u8; N]) -> T) -> Vec<[T; 3]> {
    let (numbers, _) = bytes.as_chunks::<N>();
    let (points, _) = numbers.as_chunks::<3>();
    points.iter().map(|point| point.map(number)).collect()
}
