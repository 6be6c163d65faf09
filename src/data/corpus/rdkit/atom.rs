//! Reads atoms (`_addAtomFromPickle`).

use super::reader::{Reader, Result};
use super::{RdkitAtom, tag};

impl Reader<'_, '_> {
    pub(super) fn atom(&mut self) -> Result<RdkitAtom> {
        let atomic_number = self.u8()?;
        let flags = self.u8()?;
        let has = |bit: u8| flags & 1 << bit != 0;
        let mut atom = RdkitAtom {
            atomic_number,
            aromatic: has(6),
            no_implicit: has(5),
            has_query: has(4),
            ..RdkitAtom::default()
        };
        if has(7) {
            // Coordinates inside the atom: no writer since version 3 stores them, but the format allows it.
            self.skip(3, 4)?;
        }
        self.atom_data(&mut atom)?;
        if has(4) {
            self.query()?;
        }
        if has(3) {
            atom.map_number = Some(self.map_number()?);
        }
        if has(2) {
            self.expect(tag::ATOM_DUMMY_LABEL, "an atom's label does not begin")?;
            self.string()?;
        }
        if has(1) {
            self.monomer()?;
        }
        Ok(atom)
    }

    /// Reads the values that differ from their default; a mask states which they are (`_unpickleAtomData`).
    fn atom_data(&mut self, atom: &mut RdkitAtom) -> Result<()> {
        let mask = self.i32()?;
        let has = |bit: i32| mask & 1 << bit != 0;
        if has(0) {
            // The mass, superseded by isotopes.
            self.skip(1, 4)?;
        }
        if has(1) {
            atom.formal_charge = self.u8()?.cast_signed();
        }
        if has(2) {
            atom.chiral_tag = self.u8()?;
        }
        if has(3) {
            // Hybridization.
            self.skip(1, 1)?;
        }
        if has(4) {
            atom.explicit_hydrogens = self.u8()?;
        }
        // Explicit and implicit valence, which RDKit stores only to save computing them.
        for bit in 5..=6 {
            if has(bit) {
                self.skip(1, 1)?;
            }
        }
        if has(7) {
            atom.radical_electrons = self.u8()?;
        }
        if has(8) {
            atom.isotope = self.cursor.u32()?;
        }
        Ok(())
    }

    fn map_number(&mut self) -> Result<i32> {
        self.expect(tag::ATOM_MAP_NUMBER, "an atom's map number does not begin")?;
        match self.u8()? {
            // A map number that does not fit 7 bits follows in four bytes.
            128.. => self.i32(),
            small => Ok(small.into()),
        }
    }

    /// Skips the residue that an atom belongs to.
    fn monomer(&mut self) -> Result<()> {
        if self.accept(tag::BEGIN_MONOMER_INFO)? {
            // Name and kind.
            self.string()?;
            self.skip(1, 1)?;
        } else {
            self.expect(tag::BEGIN_ATOM_MONOMER, "an atom's residue does not begin")?;
            self.string()?;
            self.skip(1, 4)?;
        }
        loop {
            match self.u8()? {
                tag::END_ATOM_MONOMER | tag::END_MONOMER_INFO => return Ok(()),
                tag::PDB_ALT_LOC
                | tag::PDB_RESIDUE_NAME
                | tag::PDB_CHAIN_ID
                | tag::PDB_INSERTION_CODE
                | tag::PDB_MONOMER_CLASS
                | tag::MONOMER_RESIDUE_NAME
                | tag::MONOMER_CHAIN_ID
                | tag::MONOMER_CLASS => {
                    self.string()?;
                }
                tag::PDB_SERIAL_NUMBER
                | tag::PDB_RESIDUE_NUMBER
                | tag::PDB_SECONDARY_STRUCTURE
                | tag::PDB_SEGMENT_NUMBER
                | tag::MONOMER_RESIDUE_NUMBER => self.skip(1, 4)?,
                tag::PDB_OCCUPANCY | tag::PDB_TEMP_FACTOR => self.skip(1, 8)?,
                tag::PDB_IS_HETERO_ATOM => self.skip(1, 1)?,
                _ => return Err(self.malformed("an unknown property of a residue")),
            }
        }
    }
}
