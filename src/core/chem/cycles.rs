//! The relevant cycles of a molecule: those that are not a sum of shorter cycles. RDKit's symmetrised smallest set of smallest rings
//! is this set (release 2026.09), which does not depend on the order of atoms.
//!
//! The algorithm is Vismara's (Union of all the minimum cycle bases of a graph, Electronic Journal of Combinatorics 4, 1997, R9).
//! Two shortest paths from a root, through atoms of smaller numbers, are closed by a bond or by an atom between their ends. If
//! another pair of such paths ends there, the two cycles differ by shorter ones only. So one cycle of each such family shows whether
//! the family is relevant.

use super::graph::BondsOfAtom;
use super::molecule::Molecule;

/// The most cycles that are listed: those of the smallest sizes that have no more together. A ring of n phenylenes has more than
/// 2^n relevant cycles.
const MOST_CYCLES: usize = 5_000;

/// Returns the relevant cycles, smallest first. Each lists its atoms in order, from its smallest one towards its smaller neighbour.
pub(super) fn relevant_cycles(molecule: &Molecule, in_ring: &[bool]) -> Vec<Vec<usize>> {
    let graph = RingGraph::new(molecule, in_ring);
    let roots = (0..molecule.atoms.len()).filter(|atom| !graph.neighbours[*atom].is_empty());
    let paths: Vec<ShortestPaths> = roots.map(|root| ShortestPaths::new(&graph, root)).collect();
    let mut families: Vec<Family> =
        (0..paths.len()).flat_map(|root| paths[root].families(&graph, root)).collect();
    families.sort_by_key(|family| family.length);
    let mut basis = Basis::new(&graph);
    let mut cycles: Vec<Vec<usize>> = Vec::new();
    for same_length in families.chunk_by(|a, b| a.length == b.length) {
        if basis.is_complete() {
            break;
        }
        let (shorter, mut independent) = (cycles.len(), Vec::new());
        for family in same_length {
            let paths = &paths[family.paths];
            let reduced = basis.reduced(graph.edges_of(&family.cycle(paths)));
            if reduced.iter().any(|word| *word != 0) {
                independent.push(reduced);
                let room = MOST_CYCLES - cycles.len();
                match family.cycles(&graph, paths, room) {
                    Some(found) => cycles.extend(found),
                    None => {
                        cycles.truncate(shorter);
                        return sorted(cycles);
                    }
                }
            }
        }
        for edges in independent {
            basis.insert(edges);
        }
    }
    sorted(cycles)
}

/// Returns the cycles in their order, each from its smallest atom towards its smaller neighbour.
fn sorted(mut cycles: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    for cycle in &mut cycles {
        let smallest = (0..cycle.len()).min_by_key(|at| cycle[*at]).unwrap_or(0);
        cycle.rotate_left(smallest);
        if cycle.len() > 2 && cycle[1] > cycle[cycle.len() - 1] {
            cycle[1..].reverse();
        }
    }
    cycles.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    cycles
}

/// The ring bonds of a molecule.
struct RingGraph<'m> {
    molecule: &'m Molecule,
    /// The ring bonds of each atom.
    neighbours: Vec<BondsOfAtom>,
    /// The number of independent cycles.
    rank: usize,
}

impl<'m> RingGraph<'m> {
    fn new(molecule: &'m Molecule, in_ring: &[bool]) -> Self {
        let of_ring = |bonds: &BondsOfAtom| bonds.iter().copied().filter(|bond| in_ring[*bond]).collect();
        let neighbours: Vec<BondsOfAtom> = molecule.neighbours.iter().map(of_ring).collect();
        let mut graph = RingGraph { molecule, neighbours, rank: 0 };
        let atoms = graph.neighbours.iter().filter(|bonds| !bonds.is_empty()).count();
        let bonds = in_ring.iter().filter(|in_ring| **in_ring).count();
        graph.rank = bonds + graph.parts() - atoms;
        graph
    }

    /// Returns the number of parts that ring bonds connect.
    fn parts(&self) -> usize {
        let mut seen: Vec<bool> = self.neighbours.iter().map(|bonds| bonds.is_empty()).collect();
        let mut parts = 0;
        while let Some(start) = seen.iter().position(|seen| !seen) {
            parts += 1;
            seen[start] = true;
            let mut stack = vec![start];
            while let Some(atom) = stack.pop() {
                for other in self.beside(atom) {
                    if !std::mem::replace(&mut seen[other], true) {
                        stack.push(other);
                    }
                }
            }
        }
        parts
    }

    fn beside(&self, atom: usize) -> impl Iterator<Item = usize> {
        self.neighbours[atom].iter().map(move |bond| self.molecule.bonds[*bond].other(atom))
    }

    /// Returns the bonds of a cycle as a set of bits.
    fn edges_of(&self, cycle: &[usize]) -> Vec<u64> {
        let mut edges = vec![0; self.molecule.bonds.len().div_ceil(64)];
        for bond in self.molecule.bonds_of_ring(cycle) {
            edges[bond / 64] |= 1 << (bond % 64);
        }
        edges
    }
}

impl Molecule {
    /// Returns the bonds of a ring that is given by its atoms in order: bond `i` is between atoms `i` and `i + 1`.
    pub(super) fn bonds_of_ring(&self, ring: &[usize]) -> Vec<usize> {
        let next = ring.iter().cycle().skip(1);
        let bonds = ring.iter().zip(next).filter_map(|(a, b)| {
            self.neighbours[*a].iter().copied().find(|bond| self.bonds[*bond].other(*a) == *b)
        });
        bonds.collect()
    }
}

/// An atom that is not reached.
const FAR: u32 = u32::MAX;

/// The shortest paths from an atom through atoms of smaller numbers.
struct ShortestPaths {
    root: usize,
    /// By atom, the length of the paths; [`FAR`] if no shortest path leads there through such atoms.
    length: Vec<u32>,
    /// By atom, the atom before it on one of the paths.
    before: Vec<u32>,
    /// By atom, the first atom of that path behind the root.
    branch: Vec<u32>,
    /// The atoms that are reached, nearest first, without the root.
    reached: Vec<usize>,
}

impl ShortestPaths {
    fn new(graph: &RingGraph, root: usize) -> Self {
        let n = graph.neighbours.len();
        let mut found = ShortestPaths {
            root,
            length: vec![FAR; n],
            before: vec![FAR; n],
            branch: vec![FAR; n],
            reached: Vec::new(),
        };
        // The distance by any path: a longer path through smaller atoms does not count.
        let mut distance = vec![FAR; n];
        (distance[root], found.length[root]) = (0, 0);
        let mut queue = std::collections::VecDeque::from([root]);
        while let Some(atom) = queue.pop_front() {
            let is_end = found.length[atom] == FAR;
            for other in graph.beside(atom) {
                if distance[other] == FAR {
                    distance[other] = distance[atom] + 1;
                    queue.push_back(other);
                }
                let is_new = found.length[other] == FAR && distance[other] == distance[atom] + 1;
                if is_new && !is_end && other < root {
                    found.length[other] = distance[other];
                    found.before[other] = atom as u32;
                    found.branch[other] = if atom == root { other as u32 } else { found.branch[atom] };
                    found.reached.push(other);
                }
            }
        }
        found
    }

    /// Returns the families of cycles whose greatest atom is the root. `paths` is the index of these paths.
    fn families(&self, graph: &RingGraph, paths: usize) -> Vec<Family> {
        let mut families = Vec::new();
        for &atom in &self.reached {
            let length = self.length[atom];
            let beside = |wanted: u32| graph.beside(atom).filter(move |other| self.length[*other] == wanted);
            for other in beside(length).filter(|other| *other < atom) {
                if self.branch[other] != self.branch[atom] {
                    families.push(Family {
                        paths,
                        ends: [atom, other],
                        between: None,
                        length: 2 * length + 1,
                    });
                }
            }
            let before: Vec<usize> = if length > 1 { beside(length - 1).collect() } else { Vec::new() };
            for (at, first) in before.iter().enumerate() {
                for second in &before[..at] {
                    if self.branch[*first] != self.branch[*second] {
                        let ends = [*first, *second];
                        families.push(Family { paths, ends, between: Some(atom), length: 2 * length });
                    }
                }
            }
        }
        families
    }

    /// Returns one path to an atom, from the atom to the neighbour of the root.
    fn path(&self, end: usize) -> Vec<usize> {
        let before = |atom: &usize| Some(self.before[*atom] as usize).filter(|before| *before != self.root);
        std::iter::successors(Some(end), before).collect()
    }

    /// Returns all paths to an atom, each from the atom to the neighbour of the root; `None` if there are more than `most`.
    fn all(&self, graph: &RingGraph, end: usize, most: usize) -> Option<Vec<Vec<usize>>> {
        let mut paths = vec![vec![end]];
        for length in (1..self.length[end]).rev() {
            let mut longer = Vec::new();
            for path in &paths {
                let Some(&last) = path.last() else { continue };
                for before in graph.beside(last).filter(|other| self.length[*other] == length) {
                    longer.push([path.as_slice(), &[before]].concat());
                }
                if longer.len() > most {
                    return None;
                }
            }
            paths = longer;
        }
        Some(paths)
    }
}

/// Cycles that differ by shorter cycles only.
struct Family {
    /// The index of the paths from the root.
    paths: usize,
    /// The ends of the two paths.
    ends: [usize; 2],
    /// The atom between the ends; without one they are bonded.
    between: Option<usize>,
    /// The number of atoms.
    length: u32,
}

impl Family {
    /// Returns the atoms of the cycle of two paths, each from its end to the neighbour of the root.
    fn joined(&self, root: usize, paths: [&[usize]; 2]) -> Vec<usize> {
        let [first, second] = paths;
        let there = first.iter().rev().copied();
        std::iter::once(root).chain(there).chain(self.between).chain(second.iter().copied()).collect()
    }

    /// Returns one of the cycles.
    fn cycle(&self, paths: &ShortestPaths) -> Vec<usize> {
        let [first, second] = self.ends.map(|end| paths.path(end));
        self.joined(paths.root, [&first, &second])
    }

    /// Returns all cycles; `None` if there are more than `most`. In a relevant family no two paths meet, otherwise the cycle would be a
    /// sum of shorter ones.
    fn cycles(&self, graph: &RingGraph, paths: &ShortestPaths, most: usize) -> Option<Vec<Vec<usize>>> {
        let [first, second] = self.ends.map(|end| paths.all(graph, end, most));
        let (first, second) = (first?, second?);
        if first.len() * second.len() > most {
            return None;
        }
        let pairs = first.iter().flat_map(|one| second.iter().map(move |other| [one.as_slice(), other]));
        Some(pairs.map(|pair| self.joined(paths.root, pair)).collect())
    }
}

/// Independent cycles as sets of bonds, added modulo 2. The greatest bond of each is in no other's place.
struct Basis {
    /// By bond, the cycle whose greatest bond it is.
    by_greatest: Vec<Option<Vec<u64>>>,
    /// The number of cycles.
    count: usize,
    /// The number of cycles of a complete basis.
    rank: usize,
}

impl Basis {
    fn new(graph: &RingGraph) -> Self {
        Basis { by_greatest: vec![None; graph.molecule.bonds.len()], count: 0, rank: graph.rank }
    }

    fn is_complete(&self) -> bool {
        self.count == self.rank
    }

    /// Returns what is left of a cycle when cycles of the basis are added until its greatest bond is none of theirs; empty for a sum of
    /// them.
    fn reduced(&self, mut edges: Vec<u64>) -> Vec<u64> {
        while let Some(greatest) = greatest(&edges) {
            let Some(other) = &self.by_greatest[greatest] else { break };
            edges.iter_mut().zip(other).for_each(|(word, other)| *word ^= other);
        }
        edges
    }

    /// Adds a cycle unless it is a sum of others.
    fn insert(&mut self, edges: Vec<u64>) {
        let edges = self.reduced(edges);
        if let Some(greatest) = greatest(&edges) {
            self.by_greatest[greatest] = Some(edges);
            self.count += 1;
        }
    }
}

/// Returns the greatest bit of a set.
fn greatest(edges: &[u64]) -> Option<usize> {
    let word = edges.iter().rposition(|word| *word != 0)?;
    Some(word * 64 + edges[word].ilog2() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(smiles: &str) -> Vec<usize> {
        let molecule = Molecule::of_smiles(smiles).unwrap();
        relevant_cycles(&molecule, &molecule.in_ring()).iter().map(Vec::len).collect()
    }

    /// By RDKit 2026.09: `GetRingInfo().AtomRings()`.
    #[test]
    fn rings_are_those_of_rdkit() {
        for (smiles, expected) in [
            ("CC", &[][..]),
            ("C1CC1", &[3]),
            ("C12C3C4C1C5C4C3C25", &[4, 4, 4, 4, 4, 4]),
            ("C1CC2CCC1CC2", &[6, 6, 6]),
            ("C1C2CC3CC1CC(C2)C3", &[6, 6, 6, 6]),
            ("C1CC2CC1CC2", &[5, 5]),
            ("C12C3C1C1C2C31", &[3, 3, 4, 4, 4]),
            ("C1CC1.C1CCC1", &[3, 4]),
            ("CC1=NOC=NC2=CC=C1C1CCC21", &[4, 6, 9, 9]),
        ] {
            let mut found = sizes(smiles);
            found.sort_unstable();
            assert_eq!(found, expected, "{smiles}");
        }
    }

    #[test]
    fn families_beyond_the_limit_are_left_out() {
        let phenylenes = |n: usize| format!("C1=CC2=CC=C1{}C1=CC=C2C=C1", "C1=CC=C(C=C1)".repeat(n - 2));
        assert_eq!(sizes(&phenylenes(5)).len(), 5 + 32);
        assert_eq!(sizes(&phenylenes(14)), [6; 14]);
    }
}
