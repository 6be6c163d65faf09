//! Which atoms can be stereocentres at all (`isAtomPotentialChiralCenter` and `atomIsCandidateForRingStereochem` in
//! `Code/GraphMol/Chirality.cpp`, release 2026.09).

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::VecDeque;

use super::super::graph::{Bond, Chirality, Order};
use super::super::molecule::Molecule;
use super::super::sanitized::{Hybridisation, hybridisation};

const NITROGEN: u8 = 7;

/// The surroundings of the atoms of a molecule.
pub(super) struct Centres<'m> {
    molecule: &'m Molecule,
    hybridisation: Vec<Hybridisation>,
    /// By bond.
    conjugated: Vec<bool>,
    /// By bond.
    in_ring: Cow<'m, [bool]>,
    /// The small rings, each by its bonds. Only bridgeheads need them.
    rings: OnceCell<Vec<Vec<usize>>>,
}

impl<'m> Centres<'m> {
    pub(super) fn new(molecule: &'m Molecule, aromatic: &[bool]) -> Self {
        let (hybridisation, conjugated) = hybridisation(molecule, aromatic);
        Centres { molecule, hybridisation, conjugated, in_ring: molecule.in_ring(), rings: OnceCell::new() }
    }

    /// Returns whether the bonds and lone pairs of an atom point to the corners of a tetrahedron.
    pub(super) fn is_tetrahedral(&self, atom: usize) -> bool {
        self.hybridisation[atom] == Hybridisation::Sp3
    }

    /// Returns whether an atom with a mark of a polyhedron has no more neighbours than the polyhedron has corners.
    pub(super) fn is_polyhedral(&self, atom: usize) -> bool {
        let corners = match self.molecule.atoms[atom].chirality {
            Some(Chirality::SquarePlanar(_)) => 4,
            Some(Chirality::TrigonalBipyramidal(_)) => 5,
            Some(Chirality::Octahedral(_)) => 6,
            _ => return false,
        };
        (2..=corners).contains(&self.degree(atom))
    }

    /// Returns whether an atom can be a stereocentre if its neighbours differ.
    pub(super) fn is_possible(&self, at: usize) -> bool {
        let (atom, hydrogens) = (&self.molecule.atoms[at], self.molecule.hydrogens[at]);
        let bonds = self.bonds(at).filter(|bond| counts(bond, at)).count();
        let is_phosphine = matches!(atom.element, 15 | 33);
        match (bonds, bonds + hydrogens as usize) {
            (_, ..3 | 5..) => false,
            (3, _) if hydrogens == 1 => {
                !self.bonds(at).any(|bond| self.molecule.atoms[bond.other(at)].is_protium())
            }
            // A phosphine or an arsine keeps its shape.
            (3, _) if is_phosphine => true,
            (3, _) => match atom.element {
                NITROGEN => self.is_rigid_amine(at),
                16 | 34 => {
                    let valence = self.molecule.total_valence(at);
                    valence == 4 || valence == 3 && atom.charge == 1
                }
                _ => false,
            },
            (4, _) => true,
            _ => is_phosphine,
        }
    }

    /// Returns whether no two neighbours of an atom have the same rank.
    pub(super) fn has_different_neighbours(&self, at: usize, ranks: &[usize]) -> bool {
        let around = self.bonds(at).filter(|bond| counts(bond, at)).map(|bond| ranks[bond.other(at)]);
        let mut around: Vec<usize> = around.collect();
        around.sort_unstable();
        around.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// Those of the given atoms that are stereocentres because a ring system has several of them, like the two of
    /// `C[C@H]1CC[C@@H](C)CC1`.
    pub(super) fn in_shared_rings(&self, atoms: &[usize], ranks: &[usize]) -> Vec<usize> {
        let candidates: Vec<usize> =
            atoms.iter().copied().filter(|atom| self.is_ring_candidate(*atom, ranks)).collect();
        let shared = candidates.iter().copied().filter(|atom| {
            let system = self.ring_system(*atom);
            candidates.iter().any(|other| other != atom && system[*other])
        });
        shared.collect()
    }

    /// By atom, whether ring bonds connect it with the given one.
    fn ring_system(&self, start: usize) -> Vec<bool> {
        let mut system = vec![false; self.molecule.atoms.len()];
        system[start] = true;
        let mut next = vec![start];
        while let Some(atom) = next.pop() {
            for bond in self.molecule.neighbours[atom].iter().filter(|bond| self.in_ring[**bond]) {
                let other = self.molecule.bonds[*bond].other(atom);
                if !std::mem::replace(&mut system[other], true) {
                    next.push(other);
                }
            }
        }
        system
    }

    /// Returns whether the branches of an atom form a ring, whose equal halves the stereo of another atom of the ring may tell apart.
    fn is_ring_candidate(&self, at: usize, ranks: &[usize]) -> bool {
        let [mut inside, mut outside] = [Vec::new(), Vec::new()];
        for &bond in &self.molecule.neighbours[at] {
            let list = if self.in_ring[bond] { &mut inside } else { &mut outside };
            list.push(ranks[self.molecule.bonds[bond].other(at)]);
        }
        if inside.is_empty()
            || self.molecule.atoms[at].element == NITROGEN && self.degree(at) == 3 && !self.is_braced(at)
        {
            return false;
        }
        let all = inside.len();
        inside.sort_unstable();
        inside.dedup();
        match outside[..] {
            [a, b] => a != b && inside.len() < all,
            [_] => inside.len() < all,
            [] => matches!((all, inside.len()), (4, 3) | (3, 2)),
            _ => false,
        }
    }

    /// Returns whether a double bond lies in a ring smaller than `size`.
    pub(super) fn is_in_ring_below(&self, [a, b]: [usize; 2], size: usize) -> bool {
        self.smallest_ring([a, b]).is_some_and(|smallest| smallest < size)
    }

    /// Returns the neighbours of an atom, hydrogens that are no atoms included.
    fn degree(&self, atom: usize) -> usize {
        self.molecule.neighbours[atom].len() + self.molecule.hydrogens[atom] as usize
    }

    fn bonds(&self, atom: usize) -> impl Iterator<Item = &'m Bond> {
        let molecule = self.molecule;
        molecule.neighbours[atom].iter().map(|bond| &molecule.bonds[*bond])
    }

    /// Returns whether a nitrogen with three bonds cannot invert, and takes part in no conjugation.
    fn is_rigid_amine(&self, atom: usize) -> bool {
        let is_conjugated = self.molecule.neighbours[atom].iter().any(|bond| self.conjugated[*bond]);
        self.is_tetrahedral(atom) && !is_conjugated && self.is_braced(atom)
    }

    /// Returns whether an atom lies in a ring of three or is a bridgehead.
    fn is_braced(&self, atom: usize) -> bool {
        let mut bonds = self.bonds(atom);
        bonds.any(|bond| self.smallest_ring(bond.atoms) == Some(3)) || self.is_bridgehead(atom)
    }

    /// Returns whether an atom has at least three ring bonds, and each of its rings shares two bonds with another one
    /// (`queryIsAtomBridgehead` in `Code/GraphMol/QueryOps.cpp`).
    fn is_bridgehead(&self, atom: usize) -> bool {
        let own = &self.molecule.neighbours[atom];
        if own.iter().filter(|bond| self.in_ring[**bond]).count() < 3 {
            return false;
        }
        let rings = self.rings.get_or_init(|| rings_by_bonds(self.molecule));
        let through = |ring: &&Vec<usize>| ring.iter().any(|bond| own.contains(bond));
        let overlap = |a: &[usize], b: &[usize]| a.iter().filter(|bond| b.contains(bond)).count() >= 2;
        let here: Vec<&Vec<usize>> = rings.iter().filter(through).collect();
        let shares = |at: usize| (0..here.len()).any(|other| other != at && overlap(here[at], here[other]));
        (0..here.len()).all(shares)
    }

    /// Returns the size of the smallest ring with a bond between these atoms; `None` if it lies in no ring. Dative bonds close no rings.
    fn smallest_ring(&self, [from, to]: [usize; 2]) -> Option<usize> {
        let mut distance = vec![0; self.molecule.atoms.len()];
        distance[from] = 1;
        let mut next = VecDeque::from([from]);
        while let Some(atom) = next.pop_front() {
            for bond in self.bonds(atom).filter(|bond| bond.order != Order::Dative) {
                let other = bond.other(atom);
                let is_bond_itself = (atom, other) == (from, to);
                if is_bond_itself || distance[other] > 0 {
                    continue;
                }
                distance[other] = distance[atom] + 1;
                if other == to {
                    return Some(distance[other]);
                }
                next.push_back(other);
            }
        }
        None
    }
}

/// Returns the small rings, each by its bonds.
fn rings_by_bonds(molecule: &Molecule) -> Vec<Vec<usize>> {
    molecule.rings().rings.iter().map(|ring| molecule.bonds_of_ring(ring)).collect()
}

/// Returns whether a bond counts at one of its atoms: a dative bond does not count where it begins.
fn counts(bond: &Bond, atom: usize) -> bool {
    bond.order != Order::Any && !(bond.order == Order::Dative && bond.atoms[0] == atom)
}
