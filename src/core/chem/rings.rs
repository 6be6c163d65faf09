//! Aromaticity and small rings as RDKit perceives them.

use std::borrow::Cow;

use super::cycles::relevant_cycles;
use super::graph::{Bond, BondsOfAtom, Order};
use super::molecule::Molecule;

/// The rings of a molecule and their aromaticity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rings {
    /// By bond, whether it is aromatic.
    pub aromatic: Vec<bool>,
    /// RDKit's symmetrised smallest set of smallest rings, smallest first: the rings that are no sum of smaller ones. Each lists its
    /// atoms in order.
    pub rings: Vec<Vec<usize>>,
}

impl Molecule {
    /// Aromatic bonds and small rings.
    pub(crate) fn rings(&self) -> Rings {
        let in_ring = self.in_ring();
        let rings = relevant_cycles(self, &in_ring);
        Rings { aromatic: self.aromatic_in_rings(&in_ring, &rings), rings }
    }

    /// By bond, whether it lies in a ring. Dative bonds do not close rings.
    pub(crate) fn in_ring(&self) -> Cow<'_, [bool]> {
        match self.in_ring.len() == self.bonds.len() {
            true => Cow::Borrowed(&self.in_ring),
            false => Cow::Owned(ring_bonds(&self.bonds, &self.neighbours)),
        }
    }

    /// By bond, whether it is aromatic.
    pub fn aromatic_bonds(&self) -> Vec<bool> {
        let in_ring = self.in_ring();
        if !in_ring.contains(&true) {
            return self.bonds.iter().map(|bond| bond.order == Order::Aromatic).collect();
        }
        self.aromatic_in_plain_rings(&in_ring).unwrap_or_else(|| self.rings().aromatic)
    }
}

/// By bond, whether it lies in a ring, that is, whether its atoms stay connected without it. Dative bonds do not close rings, as in
/// RDKit.
pub(crate) fn ring_bonds(bonds: &[Bond], neighbours: &[BondsOfAtom]) -> Vec<bool> {
    let n = neighbours.len();
    let mut in_ring: Vec<bool> = bonds.iter().map(|bond| bond.order != Order::Dative).collect();
    // Tarjan's bridge algorithm without recursion: `found` is the order of discovery, `low` the earliest atom reachable from below.
    let (mut found, mut low) = (vec![usize::MAX; n], vec![usize::MAX; n]);
    let mut count = 0;
    for start in 0..n {
        if found[start] != usize::MAX {
            continue;
        }
        let mut stack = vec![(start, usize::MAX, 0)];
        while let Some((atom, entered, next)) = stack.pop() {
            if next == 0 {
                (found[atom], low[atom]) = (count, count);
                count += 1;
            }
            let Some(&bond) = neighbours[atom].get(next) else {
                let Some(&(parent, ..)) = stack.last() else { continue };
                low[parent] = low[parent].min(low[atom]);
                in_ring[entered] = low[atom] <= found[parent];
                continue;
            };
            stack.push((atom, entered, next + 1));
            let other = bonds[bond].other(atom);
            if bond == entered || bonds[bond].order == Order::Dative {
                continue;
            }
            if found[other] == usize::MAX {
                stack.push((other, bond, 0));
            } else {
                low[atom] = low[atom].min(found[other]);
            }
        }
    }
    in_ring
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aromatic(smiles: &str) -> Vec<bool> {
        Molecule::of_smiles(smiles).unwrap().aromatic_bonds()
    }

    #[test]
    fn aromatic_bonds_are_those_of_rdkit() {
        assert_eq!(aromatic("C1=CC=CC=C1"), [true; 6]);
        let fluorene = Molecule::of_smiles("c1ccc2c(c1)-c1ccccc1C2").unwrap();
        let single: Vec<[usize; 2]> = fluorene
            .bonds
            .iter()
            .zip(fluorene.aromatic_bonds())
            .filter(|(_, is)| !is)
            .map(|(b, _)| b.atoms)
            .collect();
        assert_eq!(single, [[4, 6], [11, 12], [3, 12]]);
        // Conjugated rings that are not aromatic.
        for smiles in ["C1=CC=CC=CC=C1", "C1=CC2=CC=CC2=C1", "C1=CC=C1", "C=C1C=CC=C1", "C1CCCCC1"] {
            assert!(!aromatic(smiles).contains(&true), "{smiles}");
        }
    }
}
