//! Conjugation and hybridisation, as in RDKit's `ConjugHybrid.cpp` (release 2026.09).

use super::super::electrons::outer;
use super::super::graph::BondsOfAtom;
use super::super::molecule::Molecule;
use super::super::valences::valences;

/// The hybridisation of an atom, which determines its bond angles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hybridisation {
    /// At most one bond.
    S,
    /// Two bonds in a line.
    Sp,
    /// Three bonds in a plane.
    Sp2,
    /// Four bonds to the corners of a tetrahedron.
    Sp3,
    /// Five bonds.
    Sp3d,
    /// Six bonds.
    Sp3d2,
    /// More bonds, or the dummy atom `*`.
    Other,
}

/// The inputs for the rules.
struct Orbitals<'m> {
    molecule: &'m Molecule,
    aromatic: &'m [bool],
    neighbours: &'m [BondsOfAtom],
}

/// By atom its hybridisation, and by bond whether it is conjugated.
pub(in crate::chem) fn hybridisation(
    molecule: &Molecule,
    aromatic: &[bool],
) -> (Vec<Hybridisation>, Vec<bool>) {
    let orbitals = Orbitals { molecule, aromatic, neighbours: &molecule.neighbours };
    let conjugated = orbitals.conjugated();
    let atoms = 0..molecule.atoms.len();
    (atoms.map(|atom| orbitals.of(atom, &conjugated)).collect(), conjugated)
}

impl Orbitals<'_> {
    /// Returns whether an atom can take part in conjugation: it has electrons to give and is not hypervalent.
    fn can_conjugate(&self, at: usize) -> bool {
        let atom = &self.molecule.atoms[at];
        let default = valences(atom.element)[0];
        if atom.charge == 0 && default >= 0 && self.molecule.total_valence(at) > default {
            return false;
        }
        let outer = outer(atom.element);
        let bonds = self.neighbours[at].len() as u32 + self.molecule.hydrogens[at];
        // Of the heavier elements in the columns of nitrogen and oxygen, only those of oxygen's column with one bond take part.
        let may = atom.element <= 10 || !matches!(outer, 5 | 6) || outer == 6 && bonds < 2;
        may && self.molecule.free_electrons(at) > 0
    }

    fn conjugated(&self) -> Vec<bool> {
        let bonds = &self.molecule.bonds;
        let mut conjugated = self.aromatic.to_vec();
        let candidates: Vec<bool> = (0..self.neighbours.len()).map(|atom| self.can_conjugate(atom)).collect();
        // RDKit counts no bonds at atoms that are not candidates.
        let around = |atom: usize| self.neighbours[atom].len() + self.molecule.hydrogens[atom] as usize;
        for atom in (0..self.neighbours.len()).filter(|atom| candidates[*atom]) {
            if !matches!(around(atom), 2 | 3) {
                continue;
            }
            for &first in &self.neighbours[atom] {
                let multiple = self.aromatic[first] || self.molecule.valence(first, atom) > 1;
                if !multiple || !candidates[bonds[first].other(atom)] {
                    continue;
                }
                for &second in self.neighbours[atom].iter().filter(|second| **second != first) {
                    let other = bonds[second].other(atom);
                    if candidates[other] && around(other) <= 3 {
                        conjugated[first] = true;
                        conjugated[second] = true;
                    }
                }
            }
        }
        conjugated
    }

    fn of(&self, at: usize, conjugated: &[bool]) -> Hybridisation {
        let atom = &self.molecule.atoms[at];
        let all = self.neighbours[at].len() + self.molecule.hydrogens[at] as usize;
        if atom.element == 0 {
            return Hybridisation::Other;
        }
        // As in RDKit, a chirality mark decides if the atom has four neighbours.
        if atom.chirality.is_some() && all == 4 {
            return Hybridisation::Sp3;
        }
        // From actinium on, RDKit counts only neighbours.
        let orbitals = if atom.element < 89 { self.bonds_and_pairs(at) } else { all as i32 };
        match orbitals {
            ..=1 => Hybridisation::S,
            2 => Hybridisation::Sp,
            3 => Hybridisation::Sp2,
            // For example the second oxygen of a carboxyl group.
            4 if all <= 3 && self.neighbours[at].iter().any(|bond| conjugated[*bond]) => Hybridisation::Sp2,
            4 => Hybridisation::Sp3,
            5 => Hybridisation::Sp3d,
            6 => Hybridisation::Sp3d2,
            _ => Hybridisation::Other,
        }
    }

    /// Returns the number of bonds and lone pairs.
    fn bonds_and_pairs(&self, at: usize) -> i32 {
        let atom = &self.molecule.atoms[at];
        let degree = self.molecule.degree(at);
        if atom.element <= 1 {
            return degree;
        }
        let (outer, used) = (outer(atom.element), self.molecule.total_valence(at));
        let free = outer - (used + atom.charge);
        // Below an octet, each unpaired electron has its own orbital.
        if used + outer - atom.charge < 8 {
            let radicals = self.molecule.radicals(at);
            degree + (free - radicals) / 2 + radicals
        } else {
            degree + free / 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SanitizedMolecule;
    use super::Hybridisation::{self, S, Sp, Sp2, Sp3, Sp3d2};

    fn of(smiles: &str) -> Vec<Hybridisation> {
        SanitizedMolecule::new(smiles).unwrap().hybridisation
    }

    #[test]
    fn hybridisation_as_rdkit_has_it() {
        assert_eq!(of("CC#N"), [Sp3, Sp, Sp]);
        assert_eq!(of("CC(=O)OC"), [Sp3, Sp2, Sp2, Sp2, Sp3]);
        assert_eq!(of("CC(=O)NC"), [Sp3, Sp2, Sp2, Sp2, Sp3]);
        assert_eq!(of("CS(=O)(=O)C"), [Sp3, Sp3, Sp2, Sp2, Sp3]);
        assert_eq!(of("c1ccsc1"), [Sp2; 5]);
        assert_eq!(of("C=C=C"), [Sp2, Sp, Sp2]);
        assert_eq!(of("[Na+].[Cl-]")[0], S);
        assert_eq!(of("FS(F)(F)(F)(F)F")[1], Sp3d2);
        assert_eq!(of("C[N+](C)(C)C"), [Sp3; 5]);
        assert_eq!(of("[CH3]"), [Sp3]);
    }
}
