//! Aromaticity of any ring system by RDKit's default model (`Code/GraphMol/Aromaticity.cpp`, release 2026.09): Hückel's rule for each
//! ring and for fused rings together.

use super::graph::Order;
use super::molecule::Molecule;

/// Rings of more bonds are not fused with others (`maxFusedAromaticRingSize`).
const LARGEST_FUSED: usize = 24;
/// The most rings that are taken together.
const MOST_FUSED: usize = 6;
/// In a system of more rings at most two are taken together.
const MANY_RINGS: usize = 300;
/// From this size on, an ether's O or S gives no electrons.
const MACROCYCLE: usize = 9;
/// The most sets of rings that are tried in a system. RDKit tries all, which may take hours.
const MOST_SETS: usize = 200_000;

/// What an atom gives to an aromatic ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Donor {
    /// So many electrons.
    Electrons(i32),
    /// One or two electrons: `*` without a double bond in a ring. No two such atoms are in one system.
    Any,
}

/// A ring all of whose atoms may be aromatic.
struct Ring {
    atoms: Vec<usize>,
    bonds: Vec<usize>,
    /// The rings that share exactly one bond with it.
    fused: Vec<usize>,
}

/// The search for aromatic rings.
struct Perception {
    /// By atom, what it gives.
    donors: Vec<Option<Donor>>,
    rings: Vec<Ring>,
    /// By bond, whether it is aromatic.
    aromatic: Vec<bool>,
}

/// A set of fused rings that grows ring by ring.
struct Sets<'p> {
    rings: &'p [Ring],
    size: usize,
    /// The sets that may still be tried.
    left: usize,
    /// The sets of `size` rings.
    found: Vec<Vec<usize>>,
}

impl Molecule {
    /// By bond, whether it is aromatic. `rings` are the relevant cycles, smallest first. A bond that is still written as aromatic
    /// after sanitisation counts as aromatic.
    pub(super) fn aromatic_in_rings(&self, in_ring: &[bool], rings: &[Vec<usize>]) -> Vec<bool> {
        let mut perception = Perception::new(self, in_ring, rings);
        let mut seen = vec![false; perception.rings.len()];
        while let Some(start) = seen.iter().position(|seen| !seen) {
            let system = perception.system(start, &mut seen);
            perception.mark(&system);
        }
        perception.aromatic
    }

    /// Returns what an atom gives to a ring; `size` is that of its smallest ring.
    fn donor(&self, at: usize, in_ring: &[bool], size: usize) -> Option<Donor> {
        let atom = &self.atoms[at];
        let multiple = || self.neighbours[at].iter().filter(|bond| self.valence(**bond, at) > 1);
        if atom.element == 0 {
            return match multiple().count() {
                0 => Some(Donor::Any),
                1 if multiple().any(|bond| in_ring[*bond]) => Some(Donor::Electrons(1)),
                1 => Some(Donor::Any),
                _ => None,
            };
        }
        let is_ether = matches!(atom.element, 8 | 16)
            && atom.charge == 0
            && self.neighbours[at].len() == 2
            && multiple().next().is_none();
        let electrons = self.donates(at, in_ring)?;
        (electrons != 2 || !is_ether || size < MACROCYCLE).then_some(Donor::Electrons(electrons))
    }
}

impl Perception {
    fn new(molecule: &Molecule, in_ring: &[bool], rings: &[Vec<usize>]) -> Self {
        let mut smallest = vec![0; molecule.atoms.len()];
        for ring in rings.iter().rev() {
            ring.iter().for_each(|atom| smallest[*atom] = ring.len());
        }
        let donors: Vec<Option<Donor>> = (0..molecule.atoms.len())
            .map(|atom| if smallest[atom] > 0 { molecule.donor(atom, in_ring, smallest[atom]) } else { None })
            .collect();
        let mut candidates: Vec<Ring> = rings
            .iter()
            .filter(|ring| ring.iter().all(|atom| donors[*atom].is_some()))
            .filter(|ring| ring.iter().any(|atom| molecule.atoms[*atom].element != 0))
            .map(|ring| Ring { atoms: ring.clone(), bonds: molecule.bonds_of_ring(ring), fused: Vec::new() })
            .collect();
        fuse(&mut candidates, molecule.bonds.len());
        let aromatic = molecule.bonds.iter().map(|bond| bond.order == Order::Aromatic).collect();
        Perception { donors, rings: candidates, aromatic }
    }

    /// Returns the rings that are fused with one, directly or through others.
    fn system(&self, start: usize, seen: &mut [bool]) -> Vec<usize> {
        let mut system = vec![start];
        seen[start] = true;
        let mut next = 0;
        while let Some(&ring) = system.get(next) {
            for &other in &self.rings[ring].fused {
                if !std::mem::replace(&mut seen[other], true) {
                    system.push(other);
                }
            }
            next += 1;
        }
        system
    }

    /// Marks the aromatic bonds of a system: first single rings are tried, then two together, and so on until all bonds are marked.
    fn mark(&mut self, system: &[usize]) {
        let mut unmarked: Vec<usize> =
            system.iter().flat_map(|ring| self.rings[*ring].bonds.iter().copied()).collect();
        unmarked.sort_unstable();
        unmarked.dedup();
        let most = if system.len() > MANY_RINGS { 2 } else { MOST_FUSED.min(system.len()) };
        let mut left = MOST_SETS;
        for size in 1..=most {
            let mut sets = Sets { rings: &self.rings, size, left, found: Vec::new() };
            sets.find(system);
            left = sets.left;
            for set in sets.found {
                if self.satisfies(&set) {
                    for bond in once(set.iter().flat_map(|ring| &self.rings[*ring].bonds)) {
                        self.aromatic[bond] = true;
                        if let Ok(at) = unmarked.binary_search(&bond) {
                            unmarked.remove(at);
                        }
                    }
                }
            }
            if unmarked.is_empty() {
                break;
            }
        }
    }

    /// Returns whether a set of fused rings satisfies Hückel's rule. Atoms of three or more rings lie inside and do not count.
    fn satisfies(&self, set: &[usize]) -> bool {
        let mut atoms: Vec<usize> =
            set.iter().flat_map(|ring| self.rings[*ring].atoms.iter().copied()).collect();
        atoms.sort_unstable();
        let (mut least, mut most, mut any) = (0, 0, 0);
        for same in atoms.chunk_by(|a, b| a == b).filter(|same| same.len() <= 2) {
            match self.donors[same[0]] {
                Some(Donor::Electrons(electrons)) => {
                    least += electrons;
                    most += electrons;
                }
                Some(Donor::Any) => {
                    least += 1;
                    most += 2;
                    any += 1;
                }
                None => {}
            }
        }
        any <= 1 && (most == 2 || most >= 6 && (least..=most).any(|electrons| electrons % 4 == 2))
    }
}

/// Returns the bonds that occur once.
fn once<'b>(bonds: impl Iterator<Item = &'b usize>) -> Vec<usize> {
    let mut bonds: Vec<usize> = bonds.copied().collect();
    bonds.sort_unstable();
    bonds.chunk_by(|a, b| a == b).filter(|same| same.len() == 1).map(|same| same[0]).collect()
}

/// Lists the rings that each ring is fused with.
fn fuse(rings: &mut [Ring], bonds: usize) {
    let mut by_bond: Vec<Vec<usize>> = vec![Vec::new(); bonds];
    for (at, ring) in rings.iter().enumerate().filter(|(_, ring)| ring.bonds.len() <= LARGEST_FUSED) {
        ring.bonds.iter().for_each(|bond| by_bond[*bond].push(at));
    }
    for (at, ring) in rings.iter_mut().enumerate().filter(|(_, ring)| ring.bonds.len() <= LARGEST_FUSED) {
        let sharing = ring.bonds.iter().flat_map(|bond| &by_bond[*bond]);
        ring.fused = once(sharing.filter(|other| **other != at));
    }
}

impl Sets<'_> {
    /// Finds the sets of `size` rings of a system that hang together.
    fn find(&mut self, system: &[usize]) {
        for &first in system {
            let later = self.rings[first].fused.iter().copied().filter(|other| *other > first).collect();
            self.grow(&mut vec![first], later);
        }
    }

    /// Adds rings that are fused with the set and greater than its first ring, so that each set is found once (Wernicke's
    /// enumeration of connected subgraphs).
    fn grow(&mut self, set: &mut Vec<usize>, mut next: Vec<usize>) {
        if set.len() == self.size {
            if self.left > 0 {
                self.left -= 1;
                self.found.push(set.clone());
            }
            return;
        }
        while let Some(ring) = next.pop() {
            if self.left == 0 {
                return;
            }
            let is_beside_set = |other: &usize| set.iter().any(|own| self.rings[*own].fused.contains(other));
            let is_new = |other: &&usize| **other > set[0] && !set.contains(other) && !is_beside_set(other);
            let new = self.rings[ring].fused.iter().filter(is_new).copied();
            let next = next.iter().copied().chain(new).collect();
            set.push(ring);
            self.grow(set, next);
            set.pop();
        }
    }
}
