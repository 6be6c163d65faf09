//! Aromaticity of plain ring systems. A system is plain if each of its rings has five or six atoms and satisfies Hückel's rule by
//! itself, or if it is a single ring of at most seven atoms, aromatic or not. Most molecules have only these, and they take
//! microseconds; the rest take the whole model ([`super::huckel`]).
//!
//! The rule and the electron counts of atoms are those of RDKit's default model (`Code/GraphMol/Aromaticity.cpp`, release 2026.09).

use super::electrons::outer;
use super::graph::{BondsOfAtom, Order};
use super::molecule::Molecule;
use super::rings::ring_bonds;
use super::valences::valences;

/// Larger rings are not plain: they need not be among the smallest ones.
const LARGEST: usize = 7;

impl Molecule {
    /// By bond, whether it is aromatic; `None` if some ring system is not plain. `in_ring` comes from [`ring_bonds`].
    pub(super) fn aromatic_in_plain_rings(&self, in_ring: &[bool]) -> Option<Vec<bool>> {
        let is_known = |bond: usize| matches!(self.bonds[bond].order, Order::Single | Order::Double);
        // The electrons that `*` gives depend on its ring, so a molecule with one is never plain.
        if !(0..self.bonds.len()).all(|bond| !in_ring[bond] || is_known(bond))
            || self.atoms.iter().any(|a| a.element == 0)
        {
            return None;
        }
        let donors: Vec<Option<i32>> =
            (0..self.atoms.len()).map(|atom| self.donates(atom, in_ring)).collect();
        let may_be =
            |bond: usize| in_ring[bond] && self.bonds[bond].atoms.iter().all(|atom| donors[*atom].is_some());
        let mut neighbours: Vec<BondsOfAtom> = self
            .neighbours
            .iter()
            .map(|bonds| bonds.iter().copied().filter(|bond| may_be(*bond)).collect())
            .collect();
        // Keep only the bonds that lie in a ring made of such bonds.
        let around = ring_bonds(&self.bonds, &neighbours);
        neighbours.iter_mut().for_each(|bonds| bonds.retain(|bond| around[*bond]));
        let mut aromatic: Vec<bool> = self.bonds.iter().map(|bond| bond.order == Order::Aromatic).collect();
        let mut seen = vec![false; self.atoms.len()];
        for start in 0..self.atoms.len() {
            if seen[start] || neighbours[start].is_empty() {
                continue;
            }
            let mut system = vec![start];
            seen[start] = true;
            let mut next = 0;
            while let Some(&atom) = system.get(next) {
                for other in neighbours[atom].iter().map(|bond| self.bonds[*bond].other(atom)) {
                    if !std::mem::replace(&mut seen[other], true) {
                        system.push(other);
                    }
                }
                next += 1;
            }
            let is_aromatic = self.is_aromatic_system(&system, &neighbours, &donors)?;
            system.iter().flat_map(|atom| &neighbours[*atom]).for_each(|bond| aromatic[*bond] |= is_aromatic);
        }
        Some(aromatic)
    }

    /// `Some(true)` if all bonds of a ring system are aromatic, `Some(false)` if none is; `None` if the system is not plain.
    fn is_aromatic_system(
        &self,
        system: &[usize],
        neighbours: &[BondsOfAtom],
        donors: &[Option<i32>],
    ) -> Option<bool> {
        let is_single = system.iter().all(|atom| neighbours[*atom].len() == 2);
        if is_single && system.len() <= LARGEST {
            return self.is_smallest(system).then(|| satisfies_rule(system, donors));
        }
        for &atom in system {
            for &bond in &neighbours[atom] {
                let ring = self.shortest_ring(bond, neighbours).filter(|ring| ring.len() > 4)?;
                if !satisfies_rule(&ring, donors) || !self.is_smallest(&ring) {
                    return None;
                }
            }
        }
        Some(true)
    }

    /// Returns whether no bridge of one or two atoms crosses a ring, so that it is one of the smallest.
    fn is_smallest(&self, ring: &[usize]) -> bool {
        let beside =
            |atom: usize| self.neighbours[atom].iter().map(move |bond| self.bonds[*bond].other(atom));
        let outside = |atom: usize| beside(atom).filter(|other| !ring.contains(other));
        ring.iter().all(|&atom| {
            outside(atom).all(|first| {
                let bridges =
                    |to: usize| ring.contains(&to) && to != atom && !beside(atom).any(|other| other == to);
                !beside(first).any(bridges)
                    && !outside(first).any(|second| second != atom && beside(second).any(bridges))
            })
        })
    }

    /// Returns a shortest ring of three to six atoms through a bond, along bonds of `neighbours`.
    fn shortest_ring(&self, bond: usize, neighbours: &[BondsOfAtom]) -> Option<Vec<usize>> {
        let [from, to] = self.bonds[bond].atoms;
        (3..=6).find_map(|size| {
            let mut path = vec![from];
            self.closes(&mut path, to, size, bond, neighbours).then_some(path)
        })
    }

    /// Returns whether a path can be extended to end at `to` with exactly `size` atoms, without using the bond `closing`.
    fn closes(
        &self,
        path: &mut Vec<usize>,
        to: usize,
        size: usize,
        closing: usize,
        neighbours: &[BondsOfAtom],
    ) -> bool {
        let Some(&last) = path.last() else { return false };
        for &bond in neighbours[last].iter().filter(|bond| **bond != closing) {
            let other = self.bonds[bond].other(last);
            // The path reaches its end at its full length, not earlier.
            if path.contains(&other) || (other == to) != (path.len() + 1 == size) {
                continue;
            }
            path.push(other);
            if other == to || self.closes(path, to, size, closing, neighbours) {
                return true;
            }
            path.pop();
        }
        false
    }

    /// Returns the electrons that an atom gives to an aromatic ring; `None` if it cannot be in one (`getAtomDonorTypeArom`,
    /// `isAtomCandForArom`).
    pub(super) fn donates(&self, at: usize, in_ring: &[bool]) -> Option<i32> {
        let atom = &self.atoms[at];
        let allowed = valences(atom.element)[0];
        let multiple = |bond: &&usize| self.valence(**bond, at) > 1;
        let mut bonds = self.neighbours[at].iter();
        // Beyond argon, RDKit's model knows only selenium and tellurium.
        if !bonds.any(|bond| in_ring[*bond]) || atom.element > 18 && !matches!(atom.element, 34 | 52) {
            return None;
        }
        // Excluded: an atom with more bonds than its ion takes, a radical other than of neutral carbon, and an atom with two
        // multiple bonds.
        let like = (i32::from(atom.element) - atom.charge).clamp(1, 118) as u8;
        let is_hypervalent = allowed > 0 && self.total_valence(at) > valences(like)[0];
        let is_radical = self.radicals(at) > 0 && (atom.element != 6 || atom.charge != 0);
        if is_hypervalent || is_radical || self.neighbours[at].iter().filter(multiple).count() > 1 {
            return None;
        }
        let double = self.neighbours[at].iter().find(multiple);
        let to_outside = double.filter(|bond| !in_ring[**bond]).map(|bond| self.bonds[*bond].other(at));
        let loses =
            to_outside.is_some_and(|other| is_more_electronegative(self.atoms[other].element, atom.element));
        match self.free_electrons(at) {
            ..0 => None,
            0 if to_outside.is_some() => Some(0),
            0 => double.map(|_| 1),
            1 if loses => Some(0),
            1 if double.is_some() => Some(1),
            // An empty orbital, as of tropylium.
            1 => (atom.charge == 1).then_some(0),
            // An odd number of electrons gives one, an even number a lone pair.
            more => Some(if (more - i32::from(loses)) % 2 == 1 { 1 } else { 2 }),
        }
    }
}

/// `PeriodicTable::moreElectroNegative`: more outer electrons, or equally many and a smaller atomic number.
fn is_more_electronegative(a: u8, b: u8) -> bool {
    outer(a) > outer(b) || outer(a) == outer(b) && a < b
}

/// Returns whether the electrons of a ring satisfy Hückel's rule: 4n + 2.
fn satisfies_rule(ring: &[usize], donors: &[Option<i32>]) -> bool {
    let electrons: i32 = ring.iter().filter_map(|atom| donors[*atom]).sum();
    electrons == 2 || electrons >= 6 && electrons % 4 == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is plain is as the whole model has it.
    #[test]
    fn plain_rings_are_perceived_as_the_whole_model_does() {
        let mut plain = 0;
        for smiles in [
            "c1ccccc1",
            "c1cc[nH]c1",
            "c1ccoc1",
            "c1ccsc1",
            "c1ccc2[nH]ccc2c1",
            "c1ccc2ccccc2c1",
            "c1ccc2c(c1)ccc1ccccc12",
            "O=c1cc[nH]cc1",
            "O=C1C=CC(=O)C=C1",
            "O=C1C=CC=CC1=O",
            "c1ccc(-c2ccccc2)cc1",
            "C1=CC=CC=CC=C1",
            "C1=CC=C1",
            "c1ccc2cccc2cc1",
            "O=C1c2ccccc2C(=O)c2ccccc21",
            "Cn1c(=O)c2[nH]cnc2n(C)c1=O",
            "C1=CC=C[CH-]1",
            "C1=CC=CC=C[CH+]1",
            "[CH]1C=C1",
            "[CH+]1C=C1",
            "B1C=CC=C1",
            "N1=PN=PN=P1",
            "O=S1(=O)C=CC=C1",
            "O=S1C=CC=C1",
            "C=C1C=CC=C1",
            "C=C1C=CC(=C)C=C1",
            "S=c1cc[nH]cc1",
            "c1cc2cc3ccccc3cc2cc1",
            "C1=CC2C=CC1C=C2",
            "C1CC2=CC=C1C=C2",
            "c1c[se]cc1",
            "[O-][n+]1ccccc1",
            "c1nnn[nH]1",
            "C1=CC2=CC=CC2=C1",
            "FC1=C(F)C(=O)C1=O",
            "O=C1C(=O)C=C1",
            "C1=CN2C=CC=C2C=C1",
            "c1ccc2c(c1)Cc1ccccc1-2",
            "C1=COC=CO1",
            "N#CC1=CC=C[N-]1",
        ] {
            let molecule = Molecule::of_smiles(smiles).unwrap();
            let in_ring = ring_bonds(&molecule.bonds, &molecule.neighbours);
            if let Some(found) = molecule.aromatic_in_plain_rings(&in_ring) {
                assert_eq!(found, molecule.rings().aromatic, "{smiles}");
                plain += 1;
            }
        }
        assert!(plain > 25, "{plain}");
    }
}
