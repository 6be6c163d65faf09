//! Reads bonds (`_addBondFromPickle`).

use super::reader::{Reader, Result};
use drift_core::chem::{Bond, Order};

impl Reader<'_, '_> {
    /// Reads a bond of a molecule with `atom_count` atoms.
    pub(super) fn bond(&mut self, atom_count: usize) -> Result<Bond> {
        let begin = self.index()?;
        let end = self.index()?;
        if begin.max(end) as usize >= atom_count {
            return Err(self.malformed("a bond to an atom that does not exist"));
        }
        let flags = self.u8()?;
        let has = |bit: u8| flags & 1 << bit != 0;
        let kind = if has(3) { self.u8()? } else { 1 };
        if has(2) {
            // The direction, `/` or `\`.
            self.skip(1, 1)?;
        }
        if has(1) {
            // Z or E.
            self.u8()?;
            let count = self.u8()?;
            if count == 2 {
                // The neighbours that it refers to.
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
        Ok(Bond::new([begin as usize, end as usize], order(kind)))
    }
}

/// Returns the order of a `BondType`. RDKit's bonds without an order (unspecified, zero, hydrogen) and of unusual orders (one and a half,
/// three-centre) become [`Order::Any`].
fn order(kind: u8) -> Order {
    match kind {
        1 => Order::Single,
        2 => Order::Double,
        3 => Order::Triple,
        4 => Order::Quadruple,
        12 => Order::Aromatic,
        17 => Order::Dative,
        _ => Order::Any,
    }
}
