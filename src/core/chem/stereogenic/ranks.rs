//! Ranks of atoms by which RDKit tells the neighbours of a stereocentre apart (`iterateCIPRanks` in `Code/GraphMol/Chirality.cpp`,
//! release 2026.09). They resemble the priorities of Cahn, Ingold and Prelog.

use super::super::graph::Order;
use super::super::molecule::Molecule;

/// An atom, and how often its rank counts for a neighbour: twice the bond order.
#[derive(Debug, Clone, Copy)]
struct WeightedNeighbour {
    atom: usize,
    weight: usize,
}

/// The atoms of a molecule while they are ranked.
#[derive(Debug)]
pub(super) struct Ranking {
    neighbours: Vec<Vec<WeightedNeighbour>>,
    /// By atom, its hydrogens that are not atoms.
    hydrogens: Vec<usize>,
    /// By atom, its rank, from 0. Atoms that look the same have the same rank.
    pub ranks: Vec<usize>,
}

impl Ranking {
    /// Ranks the atoms before any stereo is known: by element, isotope and map number, then by their neighbours.
    pub(super) fn new(molecule: &Molecule, aromatic: &[bool]) -> Self {
        // RDKit orders isotopes by their distance from the most common one. Here only equality matters.
        let kinds = molecule.atoms.iter().map(|atom| (atom.element, atom.isotope, atom.map));
        let keys: Vec<Vec<usize>> = kinds
            .map(|(element, isotope, map)| vec![element.into(), isotope as usize, map.unwrap_or(0) as usize])
            .collect();
        let neighbours = (0..molecule.atoms.len()).map(|atom| weighted_neighbours(molecule, aromatic, atom));
        let mut ranking = Ranking {
            neighbours: neighbours.collect(),
            hydrogens: molecule.hydrogens.iter().map(|count| *count as usize).collect(),
            ranks: dense(&keys),
        };
        ranking.refine();
        ranking
    }

    /// Ranks the atoms again, by their ranks so far and then by what is known of their stereo.
    pub(super) fn refine_by(&mut self, stereo: &[usize]) {
        let keys = self.ranks.iter().zip(stereo).map(|(rank, stereo)| vec![*rank, *stereo]);
        self.ranks = dense(&keys.collect::<Vec<_>>());
        self.refine();
    }

    /// Distinguishes atoms of the same rank by the ranks of their neighbours, until nothing changes or, as in RDKit, for half as
    /// many rounds as there are atoms.
    fn refine(&mut self) {
        for _ in 0..=self.ranks.len() / 2 {
            let before = count(&self.ranks);
            if before == self.ranks.len() {
                return;
            }
            let keys: Vec<Vec<usize>> = (0..self.ranks.len()).map(|atom| self.key(atom)).collect();
            self.ranks = dense(&keys);
            if count(&self.ranks) == before {
                return;
            }
        }
    }

    /// Returns the rank of an atom, and those of its neighbours, the highest first. A hydrogen that is not an atom has the lowest rank.
    fn key(&self, atom: usize) -> Vec<usize> {
        let mut around: Vec<usize> = self.neighbours[atom]
            .iter()
            .flat_map(|neighbour| std::iter::repeat_n(self.ranks[neighbour.atom] + 1, neighbour.weight))
            .collect();
        around.sort_unstable_by(|a, b| b.cmp(a));
        let mut key = vec![self.ranks[atom]];
        key.append(&mut around);
        key.extend(std::iter::repeat_n(0, self.hydrogens[atom]));
        key
    }
}

fn weighted_neighbours(molecule: &Molecule, aromatic: &[bool], atom: usize) -> Vec<WeightedNeighbour> {
    let weighted = molecule.neighbours[atom].iter().map(|&bond| {
        let other = molecule.bonds[bond].other(atom);
        let is_phosphorus =
            molecule.atoms[other].element == 15 && matches!(molecule.neighbours[other].len(), 3 | 4);
        let weight = match molecule.bonds[bond].order {
            _ if aromatic[bond] => 3,
            // A double bond to phosphorus with three or four neighbours counts less than a single bond.
            Order::Double if is_phosphorus => 1,
            Order::Single | Order::Dative => 2,
            Order::Aromatic => 3,
            Order::Double => 4,
            Order::Triple => 6,
            Order::Quadruple => 8,
            Order::Any => 0,
        };
        WeightedNeighbour { atom: other, weight }
    });
    weighted.collect()
}

/// By key, the number of different smaller keys.
fn dense(keys: &[Vec<usize>]) -> Vec<usize> {
    let mut sorted: Vec<&Vec<usize>> = keys.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    // Every key is in the list.
    keys.iter().map(|key| sorted.partition_point(|other| *other < key)).collect()
}

/// Returns the number of different ranks.
fn count(ranks: &[usize]) -> usize {
    ranks.iter().max().map_or(0, |highest| highest + 1)
}
