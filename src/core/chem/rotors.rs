//! The bonds about which a molecule can turn.

use super::graph::Order;
use super::molecule::Molecule;

/// The atomic numbers that the rules below name.
const CARBON: u8 = 6;
const NITROGEN: u8 = 7;
const OXYGEN: u8 = 8;
const SULFUR: u8 = 16;
const HALOGENS_OF_CAPS: [u8; 3] = [9, 17, 35];

/// A molecule beside what the rules ask of its atoms and bonds.
struct Rotors<'m> {
    molecule: &'m Molecule,
    /// By bond, whether it is single, not aromatic, and outside rings.
    single_outside: Vec<bool>,
    /// By bond, whether it is double and not aromatic.
    double: Vec<bool>,
    /// By atom, whether it lies in an aromatic ring.
    aromatic: Vec<bool>,
    /// By atom, the number of its neighbours that are not hydrogen.
    degree: Vec<usize>,
}

impl Molecule {
    /// Returns the number of rotatable bonds: RDKit's `CalcNumRotatableBonds` with its default, the strict definition. Amides, esters and
    /// similar groups do not turn, and neither do bonds whose turning moves no heavy atom (`CF3`, *tert*-butyl, nitriles).
    ///
    /// Hydrogen atoms never count as neighbours.
    pub fn rotatable_bonds(&self) -> usize {
        let rotors = Rotors::new(self);
        rotors.single_bonds().filter(|atoms| rotors.is_rotatable(*atoms)).count()
    }

    /// Returns the torsions about single bonds outside rings, in the order of the bonds: `[beside a, a, b, beside b]`. Both atoms of the
    /// bond have another neighbour that is not hydrogen, of which the first in the order of atoms is taken, and no triple bond.
    pub fn torsions(&self) -> Vec<[usize; 4]> {
        let rotors = Rotors::new(self);
        rotors.single_bonds().filter_map(|atoms| rotors.torsion(atoms)).collect()
    }

    /// Returns the number of atoms that are not hydrogen.
    pub fn heavy_atoms(&self) -> usize {
        self.atoms.iter().filter(|atom| atom.element != 1).count()
    }
}

impl<'m> Rotors<'m> {
    fn new(molecule: &'m Molecule) -> Self {
        let (aromatic_bonds, in_ring) = (molecule.aromatic_bonds(), molecule.in_ring());
        let is = |at: usize, order: Order| molecule.bonds[at].order == order && !aromatic_bonds[at];
        let bonds = 0..molecule.bonds.len();
        let mut rotors = Rotors {
            molecule,
            single_outside: bonds.clone().map(|at| is(at, Order::Single) && !in_ring[at]).collect(),
            double: bonds.map(|at| is(at, Order::Double)).collect(),
            aromatic: Vec::new(),
            degree: Vec::new(),
        };
        let atoms = molecule.neighbours.iter();
        rotors.aromatic = atoms.map(|bonds| bonds.iter().any(|bond| aromatic_bonds[*bond])).collect();
        rotors.degree = (0..molecule.atoms.len()).map(|atom| rotors.heavy_beside(atom).count()).collect();
        rotors
    }

    fn element(&self, atom: usize) -> u8 {
        self.molecule.atoms[atom].element
    }

    /// Returns the neighbours of an atom that are not hydrogen, with the bonds to them.
    fn heavy_beside(&self, atom: usize) -> impl Iterator<Item = (usize, usize)> {
        let bonds = self.molecule.neighbours[atom].iter();
        let beside = bonds.map(move |bond| (self.molecule.bonds[*bond].other(atom), *bond));
        beside.filter(|(other, _)| self.element(*other) != 1)
    }

    /// Returns the bonds that may turn: single, outside rings, with a further neighbour at both ends and no triple bond.
    fn single_bonds(&self) -> impl Iterator<Item = [usize; 2]> {
        let bonds = self.molecule.bonds.iter().zip(&self.single_outside);
        let single = bonds.filter(|(_, is_single)| **is_single).map(|(bond, _)| bond.atoms);
        single.filter(|atoms| atoms.iter().all(|atom| self.has_further(*atom)))
    }

    fn has_further(&self, atom: usize) -> bool {
        let mut bonds = self.molecule.neighbours[atom].iter();
        let has_triple = bonds.any(|bond| self.molecule.bonds[*bond].order == Order::Triple);
        self.element(atom) != 1 && self.degree[atom] > 1 && !has_triple
    }

    /// Returns whether a bond of [`Rotors::single_bonds`] turns. RDKit's pattern asks only of its first atom whether it is stiff, and a
    /// bond matches in either direction.
    fn is_rotatable(&self, [a, b]: [usize; 2]) -> bool {
        let has_cap = self.is_cap(a) || self.is_cap(b);
        let is_stiff = self.is_stiff(a) && self.is_stiff(b);
        !has_cap && !is_stiff
    }

    /// Returns the torsion about a bond of [`Rotors::single_bonds`].
    fn torsion(&self, [a, b]: [usize; 2]) -> Option<[usize; 4]> {
        Some([self.first_beside(a, b)?, a, b, self.first_beside(b, a)?])
    }

    /// Returns the first neighbour of an atom that is neither `other` nor hydrogen.
    fn first_beside(&self, atom: usize, other: usize) -> Option<usize> {
        self.heavy_beside(atom).map(|(beside, _)| beside).filter(|beside| *beside != other).min()
    }

    /// Returns whether an atom is a cap with threefold symmetry: `C(F)(F)F`, `C(Cl)(Cl)Cl`, `C(Br)(Br)Br`, `C([CH3])([CH3])[CH3]`.
    fn is_cap(&self, atom: usize) -> bool {
        if self.element(atom) != CARBON || self.aromatic[atom] {
            return false;
        }
        let mut ends =
            self.heavy_beside(atom).filter_map(|(other, _)| self.cap_end(other)).collect::<Vec<u8>>();
        ends.sort_unstable();
        ends.chunk_by(u8::eq).any(|equal| equal.len() > 2)
    }

    /// Returns the element of an atom that three of can make a cap: a halogen or the carbon of a methyl.
    fn cap_end(&self, atom: usize) -> Option<u8> {
        let element = self.element(atom);
        let is_methyl = element == CARBON && self.hydrogens(atom) == 3;
        (is_methyl || HALOGENS_OF_CAPS.contains(&element)).then_some(element)
    }

    fn hydrogens(&self, atom: usize) -> usize {
        let bonds = self.molecule.neighbours[atom].iter();
        let beside = bonds.filter(|bond| self.element(self.molecule.bonds[**bond].other(atom)) == 1).count();
        self.molecule.hydrogens[atom] as usize + beside
    }

    /// Returns whether an atom belongs to an amide or a similar group: a carbon with three neighbours, one of them doubly bonded N, O or
    /// S, beside a nitrogen, oxygen or sulfur outside rings, or the latter.
    fn is_stiff(&self, atom: usize) -> bool {
        let mut beside = self.heavy_beside(atom).filter(|(_, bond)| self.single_outside[*bond]);
        if self.is_acyl(atom) {
            return beside.any(|(other, _)| self.is_donor(other));
        }
        self.is_donor(atom) && beside.any(|(other, _)| self.is_acyl(other))
    }

    /// `[CD3]=[N,O,S]`, aliphatic.
    fn is_acyl(&self, atom: usize) -> bool {
        self.element(atom) == CARBON
            && !self.aromatic[atom]
            && self.degree[atom] == 3
            && self.heavy_beside(atom).any(|(other, bond)| self.double[bond] && self.is_acyl_end(other))
    }

    /// `[N,O,S]`, aliphatic.
    fn is_acyl_end(&self, atom: usize) -> bool {
        !self.aromatic[atom] && matches!(self.element(atom), NITROGEN | OXYGEN | SULFUR)
    }

    /// `[#7,O,S!D1]`: any nitrogen, aliphatic oxygen, aliphatic sulfur with a further neighbour.
    fn is_donor(&self, atom: usize) -> bool {
        match self.element(atom) {
            NITROGEN => true,
            OXYGEN => !self.aromatic[atom],
            SULFUR => !self.aromatic[atom] && self.degree[atom] != 1,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotatable(smiles: &str) -> usize {
        Molecule::of_smiles(smiles).unwrap().rotatable_bonds()
    }

    #[test]
    fn rotatable_bonds_are_those_of_rdkit() {
        // RDKit 2026.09: rdMolDescriptors.CalcNumRotatableBonds.
        for (smiles, count) in [
            ("C", 0),
            ("CCCC", 1),
            ("CC(C)(C)CC", 0),
            ("CCC(=O)NCC", 2),
            ("CCOC(=O)CC", 2),
            ("c1ccccc1-c1ccccc1", 1),
            ("FC(F)(F)CC", 0),
            ("N#CCC", 0),
            ("CC#CCC", 0),
            ("CCC(=O)C", 1),
            ("OC(=O)CC", 1),
            ("C1CC1C1CC1", 1),
            ("CCS(=O)(=O)NCC", 3),
            ("CC=CC", 0),
            ("CCCC.CCCC", 2),
            ("[H]/N=C/CC", 1),
            ("CSC(=S)NC", 0),
            ("O=C(c1ccccc1)c1ccccc1", 2),
        ] {
            assert_eq!(rotatable(smiles), count, "{smiles}");
        }
        assert_eq!(rotatable("[H]C([H])([H])C([H])([H])C([H])([H])C"), 1);
    }

    #[test]
    fn torsions_have_the_first_heavy_neighbours() {
        let torsions = |smiles: &str| Molecule::of_smiles(smiles).unwrap().torsions();
        assert_eq!(torsions("CCCC"), [[0, 1, 2, 3]]);
        assert_eq!(torsions("CC(=O)NC"), [[0, 1, 3, 4]]);
        assert_eq!(torsions("C1CC1C(F)(F)F"), [[0, 2, 3, 4]]);
        assert!(torsions("CC").is_empty() && torsions("CC#CC").is_empty() && torsions("C1CCC1").is_empty());
        assert!(torsions("C=C=CC").is_empty() && torsions("[H]OC").is_empty());
        assert_eq!((Molecule::of_smiles("[H]OC").unwrap().heavy_atoms(), rotatable("[H]OC")), (2, 0));
    }
}
