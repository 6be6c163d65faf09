//! The properties of a molecule that the rules need: bonds, angles, rings, and the number of bonds between two atoms.

use std::collections::VecDeque;

use crate::chem::{Atom, BondsOfAtom, Hybridisation, Order, SanitizedMolecule, SmilesError};

/// The distance of atoms that no bonds connect.
pub(super) const UNCONNECTED: u16 = u16::MAX;

/// A molecule. Atoms and bonds are given by index.
pub struct Molecule {
    /// The sanitised graph with its rings and hybridisation.
    pub shape: SanitizedMolecule,
    /// The bonds of each atom, in ascending order.
    pub neighbours: Vec<BondsOfAtom>,
    /// The bonds of each small ring in order: bond `i` is between atoms `i` and `i + 1` of [`SanitizedMolecule::rings`].
    pub ring_bonds: Vec<Vec<usize>>,
    /// By atom, the sizes of its rings.
    pub ring_sizes: Vec<Vec<usize>>,
    /// By bond, the sizes of its rings.
    pub bond_ring_sizes: Vec<Vec<usize>>,
    /// The number of bonds between each pair of atoms, as a matrix by rows.
    distances: Vec<u16>,
}

/// The kind of a bond in RDKit after perception of aromaticity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Single,
    Double,
    Aromatic,
    Other,
}

impl Molecule {
    /// Returns the molecule of a SMILES.
    ///
    /// # Errors
    /// As [`SanitizedMolecule::new`].
    pub fn new(smiles: &str) -> Result<Self, SmilesError> {
        let shape = SanitizedMolecule::new(smiles)?;
        let graph = &shape.molecule;
        let neighbours = graph.neighbours.clone();
        let bond =
            |a: usize, b: usize| neighbours[a].iter().copied().find(|bond| graph.bonds[*bond].other(a) == b);
        let mut ring_bonds = Vec::new();
        let mut ring_sizes = vec![Vec::new(); graph.atoms.len()];
        let mut bond_ring_sizes = vec![Vec::new(); graph.bonds.len()];
        let mut rings = Vec::new();
        for ring in &shape.rings {
            let size = ring.len();
            let bonds: Option<Vec<usize>> =
                (0..size).map(|at| bond(ring[at], ring[(at + 1) % size])).collect();
            // A ring that does not consist of bonds does not belong to this molecule.
            let Some(bonds) = bonds else { continue };
            ring.iter().for_each(|atom| ring_sizes[*atom].push(size));
            bonds.iter().for_each(|bond| bond_ring_sizes[*bond].push(size));
            ring_bonds.push(bonds);
            rings.push(ring.clone());
        }
        let distances = (0..neighbours.len()).flat_map(|from| distances(&shape, &neighbours, from));
        let distances = distances.collect();
        let shape = SanitizedMolecule { rings, ..shape };
        Ok(Molecule { shape, neighbours, ring_bonds, ring_sizes, bond_ring_sizes, distances })
    }

    /// Returns the two atoms of each bond.
    pub fn bonds(&self) -> impl Iterator<Item = [usize; 2]> {
        self.shape.molecule.bonds.iter().map(|bond| bond.atoms)
    }

    /// Returns the bonds between heavy atoms.
    pub(crate) fn heavy_bonds(&self) -> impl Iterator<Item = [usize; 2]> {
        self.bonds().filter(|atoms| atoms.iter().all(|atom| self.is_heavy(*atom)))
    }

    /// Returns all pairs of heavy atoms, the smaller number first.
    pub(crate) fn heavy_pairs(&self) -> impl Iterator<Item = [usize; 2]> {
        let pairs = (1..self.len()).flat_map(|b| (0..b).map(move |a| [a, b]));
        pairs.filter(|atoms| atoms.iter().all(|atom| self.is_heavy(*atom)))
    }

    /// Returns whether there are no atoms.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of atoms.
    pub fn len(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns an atom.
    pub fn atom(&self, atom: usize) -> &Atom {
        &self.shape.molecule.atoms[atom]
    }

    pub(super) fn hybridisation(&self, atom: usize) -> Hybridisation {
        self.shape.hybridisation[atom]
    }

    pub(super) fn hydrogens(&self, atom: usize) -> usize {
        let written = self.neighbours[atom].iter().filter(|bond| !self.is_heavy(self.other(**bond, atom)));
        self.shape.molecule.hydrogens[atom] as usize + written.count()
    }

    /// Returns whether an atom is no hydrogen.
    pub fn is_heavy(&self, atom: usize) -> bool {
        self.atom(atom).element != 1
    }

    pub(super) fn ends(&self, bond: usize) -> [usize; 2] {
        self.shape.molecule.bonds[bond].atoms
    }

    pub(super) fn other(&self, bond: usize, atom: usize) -> usize {
        self.shape.molecule.bonds[bond].other(atom)
    }

    pub(super) fn kind(&self, bond: usize) -> Kind {
        if self.shape.aromatic[bond] {
            return Kind::Aromatic;
        }
        match self.shape.molecule.bonds[bond].order {
            Order::Single => Kind::Single,
            Order::Double => Kind::Double,
            _ => Kind::Other,
        }
    }

    /// Returns the order of a bond as a number: 1.5 for an aromatic bond, 0 for `~`.
    pub(super) fn order(&self, bond: usize) -> f64 {
        let written = &self.shape.molecule.bonds[bond];
        match written.order {
            // Bonds that are still written as aromatic are among these.
            _ if self.shape.aromatic[bond] => 1.5,
            Order::Dative => 1.0,
            _ => f64::from(written.valence(written.atoms[0])),
        }
    }

    /// Returns the bond between two atoms.
    pub(super) fn bond(&self, a: usize, b: usize) -> Option<usize> {
        self.neighbours[a].iter().copied().find(|bond| self.other(*bond, a) == b)
    }

    /// Returns the smallest number of bonds between two atoms; 65,535 if no bonds connect them.
    pub fn distance(&self, a: usize, b: usize) -> u16 {
        self.distances[a * self.len() + b]
    }

    pub(super) fn is_in_ring_of(&self, atom: usize, size: usize) -> bool {
        self.ring_sizes[atom].contains(&size)
    }

    pub(super) fn is_aromatic(&self, atom: usize) -> bool {
        self.neighbours[atom].iter().any(|bond| self.shape.aromatic[*bond])
    }
}

/// Returns the number of bonds between one atom and each other atom, by breadth-first search.
fn distances(shape: &SanitizedMolecule, neighbours: &[BondsOfAtom], from: usize) -> Vec<u16> {
    let bonds = &shape.molecule.bonds;
    let mut distances = vec![UNCONNECTED; neighbours.len()];
    let mut queue = VecDeque::from([from]);
    distances[from] = 0;
    while let Some(atom) = queue.pop_front() {
        for other in neighbours[atom].iter().map(|bond| bonds[*bond].other(atom)) {
            if distances[other] == UNCONNECTED {
                // Molecules have fewer atoms than this type can count.
                distances[other] = distances[atom].saturating_add(1);
                queue.push_back(other);
            }
        }
    }
    distances
}
