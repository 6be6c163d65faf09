//! Reads atoms (`_addAtomFromPickle`).

use super::reader::{Reader, Result};
use super::tag;
use drift_core::chem::Atom;

impl Reader<'_, '_> {
    pub(super) fn atom(&mut self) -> Result<Atom> {
        let element = self.u8()?;
        let flags = self.u8()?;
        let has = |bit: u8| flags & 1 << bit != 0;
        // Bit 5: no hydrogens beyond the explicit ones. Bit 6 marks the atom as aromatic, which drift takes from its bonds.
        let mut atom = Atom { element, bracket: has(5), ..Atom::default() };
        if has(7) {
            // Coordinates inside the atom: no writer since version 3 stores them, but the format allows it.
            self.skip(3, 4)?;
        }
        self.atom_data(&mut atom)?;
        if has(4) {
            self.query()?;
        }
        if has(3) {
            self.map_number()?;
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
    fn atom_data(&mut self, atom: &mut Atom) -> Result<()> {
        let mask = self.i32()?;
        let has = |bit: i32| mask & 1 << bit != 0;
        if has(0) {
            // The mass, superseded by isotopes.
            self.skip(1, 4)?;
        }
        if has(1) {
            atom.charge = self.u8()?.cast_signed().into();
        }
        // The chiral tag and the hybridization.
        for bit in 2..=3 {
            if has(bit) {
                self.skip(1, 1)?;
            }
        }
        if has(4) {
            atom.hydrogens = self.u8()?.into();
        }
        // Explicit and implicit valence, which RDKit stores only to save computing them.
        for bit in 5..=6 {
            if has(bit) {
                self.skip(1, 1)?;
            }
        }
        if has(7) {
            atom.radicals = self.u8()?.into();
        }
        if has(8) {
            atom.isotope = self.cursor.u32()?;
        }
        Ok(())
    }

    /// Skips an atom map number.
    fn map_number(&mut self) -> Result<()> {
        self.expect(tag::ATOM_MAP_NUMBER, "an atom's map number does not begin")?;
        match self.u8()? {
            // A map number that does not fit 7 bits follows in four bytes.
            128.. => self.skip(1, 4),
            _ => Ok(()),
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
