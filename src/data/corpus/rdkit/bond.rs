//! Reads bonds (`_addBondFromPickle`).

use super::RdkitBond;
use super::reader::{Reader, Result};

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
        let kind = if has(3) { self.u8()? } else { 1 };
        if has(2) {
            // The direction, `/` or `\`; `stereo` contains the same information in a better form.
            self.skip(1, 1)?;
        }
        let mut stereo = 0;
        if has(1) {
            stereo = self.u8()?;
            let count = self.u8()?;
            if count == 2 {
                // The neighbours that `stereo` refers to.
                self.index()?;
                self.index()?;
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
        Ok(RdkitBond { begin, end, kind, stereo })
    }
}
