//! Reads bonds (`_addBondFromPickle`).

use super::reader::{Reader, Result};
use super::{BondKind, RdkitBond};

impl Reader<'_, '_> {
    /// Reads a bond of a molecule with `atom_count` atoms.
    pub(super) fn bond(&mut self, atom_count: usize) -> Result<RdkitBond> {
        let begin = self.index()?;
        let end = self.index()?;
        if begin.max(end) as usize >= atom_count {
            return Err(self.malformed("a bond to an atom that does not exist"));
        }
        let flags = self.u8()?;
        let has = |bit: u8| flags & 1 << bit != 0;
        let kind = if has(3) { BondKind::from_number(self.u8()?) } else { BondKind::Single };
        if has(2) {
            // The direction, `/` or `\`; `stereo` contains the same information in a better form.
            self.skip(1, 1)?;
        }
        let (mut stereo, mut stereo_atoms) = (0, None);
        if has(1) {
            stereo = self.u8()?;
            let count = self.u8()?;
            if count == 2 {
                stereo_atoms = Some((self.index()?, self.index()?));
            } else {
                self.skip(count.into(), if self.wide { 4 } else { 1 })?;
            }
        }
        if has(4) {
            // RDKit's reader expects the query after the attachment points, but its writer puts it here.
            self.query()?;
        }
        if has(0) {
            // End points and kind of a bond with variable attachment.
            self.string()?;
            self.string()?;
        }
        Ok(RdkitBond { begin, end, kind, aromatic: has(6), stereo, stereo_atoms })
    }
}

impl BondKind {
    /// The kind with this number in RDKit's `Bond::BondType`.
    fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Single,
            2 => Self::Double,
            3 => Self::Triple,
            12 => Self::Aromatic,
            17 => Self::Dative,
            other => Self::Other(other),
        }
    }
}
