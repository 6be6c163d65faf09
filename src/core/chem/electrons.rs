//! Valences, radicals and free electrons of atoms, counted as in RDKit (release 2026.09). Aromaticity, conjugation and
//! hybridisation build on these counts.

use super::molecule::Molecule;
use super::valences::valences;

impl Molecule {
    /// Returns the contribution of a bond to the valence of an atom. Aromatic rings have a Kekulé structure by now, so a bond that is
    /// still aromatic lies outside of rings and counts as 1.
    pub(super) fn valence(&self, bond: usize, atom: usize) -> i32 {
        self.bonds[bond].valence(atom) as i32
    }

    pub(super) fn total_valence(&self, atom: usize) -> i32 {
        let bonds = self.neighbours[atom].iter().map(|bond| self.valence(*bond, atom));
        bonds.sum::<i32>() + self.hydrogens[atom] as i32
    }

    /// Returns the number of bonds that count towards the valence, bonds to hydrogens included.
    pub(super) fn degree(&self, atom: usize) -> i32 {
        let bonds = self.neighbours[atom].iter().filter(|bond| self.valence(**bond, atom) > 0);
        bonds.count() as i32 + self.hydrogens[atom] as i32
    }

    /// Unpaired electrons of an atom in brackets (`assignRadicals` in `Code/GraphMol/MolOps.cpp`).
    pub(super) fn radicals(&self, at: usize) -> i32 {
        let atom = &self.atoms[at];
        if !atom.bracket || atom.element == 0 {
            return 0;
        }
        let (allowed, outer) = (valences(atom.element), outer(atom.element));
        // For elements without a listed valence, RDKit counts electrons only on bare ions.
        if allowed == [-1] {
            return if self.neighbours[at].is_empty() { (outer - atom.charge).max(0) % 2 } else { 0 };
        }
        let used = self.total_valence(at);
        let full = if atom.element <= 2 { 2 } else { 8 };
        let mut radicals = full - outer - used + atom.charge;
        if radicals < 0 {
            let free = allowed.iter().map(|valence| valence - used + atom.charge).find(|free| *free >= 0);
            radicals = free.filter(|_| allowed.len() > 1).unwrap_or(0);
        }
        match outer - used - atom.charge {
            free if free >= 0 => radicals.min(free),
            _ => radicals,
        }
    }

    /// Electrons that an atom can give to a conjugated system; negative if it cannot take part in one.
    pub(super) fn free_electrons(&self, at: usize) -> i32 {
        let atom = &self.atoms[at];
        let (default, degree) = (valences(atom.element)[0], self.degree(at));
        // An element that takes at most one bond is in no ring, and an atom with four neighbours has no free orbital.
        if default <= 1 || degree > 3 {
            return -1;
        }
        let pairs = (outer(atom.element) - default - atom.charge).max(0);
        match default - degree + pairs - self.radicals(at) {
            free if free > 1 => {
                let bonds = self.neighbours[at].len() as i32;
                let hydrogens = atom.hydrogens as i32;
                let explicit = self.total_valence(at) - self.hydrogens[at] as i32 + hydrogens;
                // Beside a triple bond or two double bonds, RDKit counts one electron.
                if explicit - bonds > 1 { 1 } else { free }
            }
            free => free,
        }
    }
}

/// Electrons of the outer shell of an element, as RDKit counts them.
pub(super) fn outer(element: u8) -> i32 {
    usize::from(element).checked_sub(1).and_then(|at| OUTER.get(at)).copied().unwrap_or(0)
}

/// `nVal` of `Code/GraphMol/atomic_data.cpp`, from hydrogen on.
#[rustfmt::skip]
const OUTER: [i32; 118] = [
    1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 2,
    3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 3, 4,
    5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 4, 5, 6, 7, 8, 9, 10, 11, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4,
    3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
];
