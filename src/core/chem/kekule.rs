//! Kekulé structures: single and double bonds for aromatic atoms.

use super::blossom::matching;
use super::graph::{Atom, Bond, BondsOfAtom, Graph, Order, SmilesProblem};
use super::rings::ring_bonds;
use super::valences::{is_early, valences};

impl Graph {
    /// Gives an order to every aromatic bond with a ring atom. Returns by bond whether it lies in a ring; empty if nothing is
    /// aromatic.
    pub(super) fn kekulize(
        &mut self,
        neighbours: &[BondsOfAtom],
        hydrogens: &mut [u32],
    ) -> Result<Vec<bool>, SmilesProblem> {
        let aromatic: Vec<bool> =
            neighbours.iter().enumerate().map(|(atom, bonds)| self.is_aromatic(atom, bonds)).collect();
        if !aromatic.contains(&true) {
            return Ok(Vec::new());
        }
        let in_ring = ring_bonds(&self.bonds, neighbours);
        let ring_atoms: Vec<bool> =
            neighbours.iter().map(|bonds| bonds.iter().any(|bond| in_ring[*bond])).collect();
        if let Some(alone) =
            (0..self.atoms.len()).find(|atom| self.atoms[*atom].aromatic && !ring_atoms[*atom])
        {
            return Err(SmilesProblem::NotInRing(alone));
        }
        let candidates: Vec<bool> = (0..self.atoms.len())
            .map(|at| {
                aromatic[at] && ring_atoms[at] && self.takes_double_bond(at, &neighbours[at], hydrogens[at])
            })
            .collect();
        // A bond to `*` may be double however it is written.
        let to_any = |bond: &Bond| bond.atoms.iter().any(|atom| self.atoms[*atom].element == 0);
        let ring_bonds =
            self.bonds.iter().zip(&in_ring).filter(|(_, in_ring)| **in_ring).map(|(bond, _)| bond);
        let edges: Vec<[usize; 2]> = ring_bonds
            .filter(|bond| bond.order == Order::Aromatic || to_any(bond))
            .map(|bond| bond.atoms)
            .collect();
        // Aromatic rings may be odd, so this needs a matching of a general graph.
        let mates = matching(self.atoms.len(), &edges, &candidates);
        // A `*` needs no double bond.
        let unmatched =
            |atom: usize| candidates[atom] && mates[atom].is_none() && self.atoms[atom].element != 0;
        if (0..self.atoms.len()).any(unmatched) {
            return Err(SmilesProblem::Kekule);
        }
        for bond in self.bonds.iter_mut().filter(|bond| bond.order == Order::Aromatic) {
            let [a, b] = bond.atoms;
            // Without a ring atom at either end, the bond stays aromatic.
            if ring_atoms[a] || ring_atoms[b] {
                bond.order = if mates[a] == Some(b) { Order::Double } else { Order::Single };
            }
        }
        for atom in (0..self.atoms.len()).filter(|atom| aromatic[*atom]) {
            hydrogens[atom] =
                self.settled(atom, &neighbours[atom], hydrogens[atom]).ok_or(SmilesProblem::Valence(atom))?;
        }
        Ok(in_ring)
    }

    /// Returns the hydrogens of an atom after its aromatic bonds got their orders; `None` if the atom exceeds its valence.
    fn settled(&mut self, at: usize, bonds: &[usize], before: u32) -> Option<u32> {
        let atom = self.atoms[at];
        // A hydrogen written on nitrogen or phosphorus is dropped, and implied again if there is room.
        let is_pyrrolic =
            atom.aromatic && matches!(atom.element, 7 | 15) && (atom.charge, atom.hydrogens) == (0, 1);
        if is_pyrrolic {
            self.atoms[at] = Atom { bracket: false, hydrogens: 0, ..atom };
        }
        // A triple bond in an aromatic ring (`Cc1#ccccc1`) exceeds the valence of carbon, but RDKit accepts it.
        let is_plain =
            bonds.iter().all(|bond| matches!(self.bonds[*bond].order, Order::Single | Order::Double));
        let hydrogens = match is_pyrrolic || !atom.bracket && !atom.aromatic {
            true => self.hydrogens(at, bonds)?,
            false => before,
        };
        (!is_plain || !self.exceeds(at, bonds, hydrogens)).then_some(hydrogens)
    }

    /// Returns whether an aromatic atom must have a double bond in its ring: it has room for exactly one.
    fn takes_double_bond(&self, at: usize, bonds: &[usize], hydrogens: u32) -> bool {
        let atom = &self.atoms[at];
        // `*` may be anything.
        if atom.element == 0 {
            return true;
        }
        let (mut sum, mut ignored) = (hydrogens as i32, 0);
        for bond in bonds {
            let order = self.bonds[*bond].valence(at) as i32;
            sum += order;
            ignored += i32::from(order == 0);
        }
        // As in `markDbondCands` of RDKit's `Kekulize.cpp`: a positive charge lowers the valence of elements left of carbon and
        // raises that of others. Either charge lowers the valence of carbon.
        let mut charge = if is_early(atom.element) { -atom.charge } else { atom.charge };
        if atom.element == 6 {
            charge = -charge.abs();
        }
        let allowed = valences(atom.element);
        let implied = hydrogens as i32 - atom.hydrogens as i32;
        let total = self.explicit_valence(at, bonds) + implied;
        let mut valence = allowed[0] + charge;
        for higher in allowed[1..].iter().take_while(|valence| **valence > 0) {
            if total > valence {
                valence = higher + charge;
            }
        }
        let degree = bonds.len() as i32 + implied - ignored;
        // A bracket atom may be a radical beside the double bond.
        degree < valence && (valence == sum + 1 || atom.bracket && valence == sum + 2)
    }
}
