//! The symmetries of a molecule: atom orders that leave it unchanged. They are stored as a group, so that memory does not grow with
//! their number.
//!
//! For each atom in turn, the group lists the places that it may take while all earlier atoms stay fixed: a stabiliser chain (C. C.
//! Sims, 1970). The atoms that one step of the chain moves together form a [`Factor`]. Once the first atom of a factor is placed,
//! the remaining group splits into factors that move different atoms, and so on. So the best order of nested equal groups, such as
//! three *tert*-butyls at one carbon, is found group by group.

use std::collections::BTreeMap;

use super::labelled::LabelledGraph;
use super::molecule::Molecule;
use super::search::{BondColours, IdenticalAtoms, Search, colours};

/// Larger molecules get only the identity.
const MAX_ATOMS: usize = 500;

/// The largest number of placements in total, so that no molecule takes long.
const MAX_STEPS: u64 = 2_000_000;

/// All atom orders that leave the molecule unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symmetries {
    /// Factors that move different atoms, so their orders can be combined freely.
    pub factors: Vec<Factor>,
    /// Whether the list is complete. It is not for molecules beyond [`MAX_ATOMS`] or [`MAX_STEPS`].
    pub complete: bool,
}

/// Orders that permute some atoms. Every order is one of the choices, applied after an order of each factor below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    /// The atoms, ascending.
    pub atoms: Vec<usize>,
    /// By atom, its index among the atoms of the factor above, or among all atoms at the top.
    pub within: Vec<u16>,
    /// The identity first. Under a choice, `atoms[i]` takes the place of `atoms[choice[i]]`. Each choice fixes one atom.
    pub choices: Vec<Vec<u16>>,
    /// Indices of the atoms that no factor below moves.
    pub settled: Vec<u16>,
    /// Orbits: indices of atoms that some order exchanges, grouped.
    pub orbits: Vec<Vec<u16>>,
    /// The factors that remain once the first atom is fixed.
    pub below: Vec<Factor>,
    /// The number of choices to examine for the best order when each factor is searched separately; saturates.
    pub work: u64,
}

impl Symmetries {
    /// Returns the symmetries that RDKit's `GetBestRMS` considers ([`LabelledGraph::of_rmsd`]).
    pub fn of_rmsd(molecule: &Molecule) -> Self {
        match molecule.atoms.len() {
            ..=MAX_ATOMS => Symmetries::from_graph(&LabelledGraph::of_rmsd(molecule)),
            _ => Symmetries { factors: Vec::new(), complete: false },
        }
    }

    /// Returns the symmetries of a labelled graph.
    pub(crate) fn from_graph(graph: &LabelledGraph) -> Self {
        let n = graph.labels.len();
        if n > MAX_ATOMS {
            return Symmetries { factors: Vec::new(), complete: false };
        }
        let colours = colours([graph; 2], BondColours::Counted);
        let mut search = Search::new(graph, graph, &colours, from_the_middle(graph));
        (search.prefers_own, search.limit) = (true, MAX_STEPS);
        let levels: Vec<Level> = (0..n).map(|at| Level::of(&mut search, at)).collect();
        let complete = !search.is_exhausted();
        let levels: Vec<&Level> = levels.iter().filter(|level| !level.orders.is_empty()).collect();
        let all: Vec<usize> = (0..n).collect();
        Symmetries { factors: factors(&levels, &all), complete }
    }

    /// Returns the number of orders; saturates.
    pub fn orders(&self) -> u64 {
        self.factors.iter().map(Factor::orders).fold(1, u64::saturating_mul)
    }
}

impl Factor {
    /// Returns the number of orders; saturates.
    pub fn orders(&self) -> u64 {
        self.below.iter().map(Factor::orders).fold(self.choices.len() as u64, u64::saturating_mul)
    }

    /// Returns its orders, the identity first. If there are more than `most`, only single choices are listed: of this factor and of those
    /// below.
    pub fn listed(&self, most: u64) -> Vec<Vec<u16>> {
        let mut all: Vec<Vec<u16>> = vec![(0..self.atoms.len() as u16).collect()];
        if self.orders() > most {
            all.extend(self.choices.iter().skip(1).cloned());
            all.extend(
                self.below
                    .iter()
                    .flat_map(|below| below.listed(0).into_iter().skip(1).map(|o| self.lifted(below, &o))),
            );
            return all;
        }
        for below in &self.below {
            let orders: Vec<Vec<u16>> =
                below.listed(most).iter().map(|order| self.lifted(below, order)).collect();
            all = all.iter().flat_map(|one| orders.iter().map(|other| after(one, other))).collect();
        }
        self.choices.iter().flat_map(|choice| all.iter().map(|order| after(choice, order))).collect()
    }

    /// Extends an order of a factor below to all atoms of this one.
    fn lifted(&self, below: &Factor, order: &[u16]) -> Vec<u16> {
        let mut lifted: Vec<u16> = (0..self.atoms.len() as u16).collect();
        for (at, to) in below.within.iter().zip(order) {
            lifted[usize::from(*at)] = below.within[usize::from(*to)];
        }
        lifted
    }
}

/// Returns the composition: first `first`, then `second`.
fn after(second: &[u16], first: &[u16]) -> Vec<u16> {
    first.iter().map(|to| second[usize::from(*to)]).collect()
}

/// The possible places of one atom while all atoms before it in the sequence stay fixed.
struct Level {
    atom: usize,
    /// One order for each place other than its own.
    orders: Vec<Vec<u32>>,
}

impl Level {
    fn of(search: &mut Search<'_>, at: usize) -> Self {
        search.release_from(0);
        let sequence = search.sequence.clone();
        let atom = sequence[at];
        let mut orders = Vec::new();
        if sequence[..at].iter().all(|atom| search.place(*atom, *atom as u32)) {
            for image in search.candidates(atom).into_iter().filter(|image| *image as usize != atom) {
                if search.place(atom, image)
                    && let IdenticalAtoms::Order(order) = search.first(at + 1, &|_, _| true)
                {
                    orders.push(order);
                }
                search.release_from(at);
            }
        }
        Level { atom, orders }
    }
}

/// Returns the atoms, ordered from the centre of each connected part outwards, so that branches separate early.
fn from_the_middle(graph: &LabelledGraph) -> Vec<usize> {
    let n = graph.labels.len();
    let mut seen = vec![false; n];
    let mut sequence = Vec::with_capacity(n);
    for start in 0..n {
        if seen[start] {
            continue;
        }
        let part = BreadthFirst::from_atom(graph, start).order;
        // The eccentricity of every atom is computed; `MAX_ATOMS` keeps this fast.
        let eccentricity = |atom: usize| BreadthFirst::from_atom(graph, atom).depth;
        let middle = part.iter().copied().min_by_key(|atom| (eccentricity(*atom), *atom)).unwrap_or(start);
        part.iter().for_each(|atom| seen[*atom] = true);
        sequence.extend(BreadthFirst::from_atom(graph, middle).order);
    }
    sequence
}

/// The atoms that are connected to one atom.
struct BreadthFirst {
    /// By their distance in bonds.
    order: Vec<usize>,
    /// The largest distance.
    depth: u32,
}

impl BreadthFirst {
    fn from_atom(graph: &LabelledGraph, from: usize) -> Self {
        let (mut order, mut far) = (vec![from], vec![u32::MAX; graph.labels.len()]);
        far[from] = 0;
        let mut next = 0;
        while let Some(&atom) = order.get(next) {
            for link in &graph.neighbours[atom] {
                let other = link.atom as usize;
                if far[other] == u32::MAX {
                    far[other] = far[atom] + 1;
                    order.push(other);
                }
            }
            next += 1;
        }
        let depth = order.last().map_or(0, |atom| far[*atom]);
        BreadthFirst { order, depth }
    }
}

/// Disjoint sets of numbers (union-find).
pub struct UnionFind(Vec<usize>);

impl UnionFind {
    /// Returns the numbers below `n`, each in a set of its own.
    pub fn new(n: usize) -> Self {
        UnionFind((0..n).collect())
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// Makes the sets of two numbers one; returns whether they were two.
    pub fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        // The smaller number is the root, so that sets come in ascending order.
        self.0[a.max(b)] = a.min(b);
        a != b
    }

    /// Returns the sets with more than one number, all ascending.
    pub fn sets(&mut self) -> Vec<Vec<usize>> {
        let mut by_root: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        (0..self.0.len()).for_each(|at| by_root.entry(self.root(at)).or_default().push(at));
        by_root.into_values().filter(|set| set.len() > 1).collect()
    }
}

/// Groups levels into factors, in the order of the sequence. `above` are the atoms of the factor above.
fn factors(levels: &[&Level], above: &[usize]) -> Vec<Factor> {
    let Some(n) = levels.first().and_then(|level| level.orders.first()).map(Vec::len) else {
        return Vec::new();
    };
    let (mut together, mut orbits) = (UnionFind::new(n), UnionFind::new(n));
    for level in levels {
        // Atoms that the orders of one level move belong to one factor, and so do levels that share a moved atom.
        for (atom, image) in level.orders.iter().flat_map(|order| order.iter().enumerate()) {
            if atom != *image as usize {
                together.join(level.atom, atom);
                orbits.join(atom, *image as usize);
            }
        }
    }
    let orbits = orbits.sets();
    together.sets().into_iter().map(|atoms| Factor::new(atoms, levels, &orbits, above)).collect()
}

impl Factor {
    /// Returns the factor of these atoms, whose orders are those of the levels that move them.
    fn new(atoms: Vec<usize>, levels: &[&Level], orbits: &[Vec<usize>], above: &[usize]) -> Self {
        let own: Vec<&Level> =
            levels.iter().copied().filter(|level| atoms.binary_search(&level.atom).is_ok()).collect();
        // Orders of its levels move only its own atoms, so each image is found.
        let place = |atom: usize| atoms.binary_search(&atom).unwrap_or(0) as u16;
        let identity = (0..atoms.len() as u16).collect();
        let choice = |order: &Vec<u32>| atoms.iter().map(|atom| place(order[*atom] as usize)).collect();
        let below = own.get(1..).map_or_else(Vec::new, |rest| factors(rest, &atoms));
        // Only levels join atoms, so each factor has at least one level.
        let choices = 1 + own[0].orders.len() as u64;
        let work =
            below.iter().map(|factor| factor.work).fold(1, u64::saturating_add).saturating_mul(choices);
        let is_moved = |at: &u16| below.iter().any(|factor| factor.within.contains(at));
        Factor {
            within: atoms.iter().map(|atom| above.binary_search(atom).unwrap_or(0) as u16).collect(),
            choices: std::iter::once(identity).chain(own[0].orders.iter().map(choice)).collect(),
            settled: (0..atoms.len() as u16).filter(|at| !is_moved(at)).collect(),
            orbits: orbits
                .iter()
                .filter(|orbit| atoms.binary_search(&orbit[0]).is_ok())
                .map(|orbit| orbit.iter().map(|atom| place(*atom)).collect())
                .collect(),
            below,
            work,
            atoms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(smiles: &str) -> (LabelledGraph, Symmetries) {
        let graph = LabelledGraph::of_rmsd(&Molecule::of_smiles(smiles).unwrap());
        let found = Symmetries::from_graph(&graph);
        (graph, found)
    }

    /// The numbers of matches that RDKit 2026.09 lists (`symmetrizeTerminalAtoms`, then `GetSubstructMatches` with uniquify off).
    #[test]
    fn as_many_orders_as_rdkit_lists() {
        for (smiles, expected) in [
            ("CC(C)(C)C", 24),
            ("c1ccccc1", 12),
            ("CC(=O)[O-]", 2),
            ("CC(=O)O", 2),
            ("CCO", 1),
            ("CCC", 2),
            ("CC(=O)C", 2),
            ("CC(=O)N", 1),
            ("CN(=O)=O", 2),
            ("CS(=O)(=O)C", 4),
            ("CS(=O)(=O)O", 6),
            ("CP(=O)(O)O", 6),
            ("NC(=[NH2+])NC", 2),
            ("Cc1ccccc1", 2),
            ("C[N+](C)(C)CC(=O)[O-]", 12),
            ("C=CC=C", 2),
            ("C=CC", 1),
            ("OC(=O)CCC(=O)O", 8),
            ("FC(F)(F)c1cc(C(F)(F)F)cc(C(F)(F)F)c1", 1296),
            ("[13CH3]C", 1),
            ("[CH2]C", 1),
            ("[Na+].[Cl-].[Na+]", 2),
            ("C12C3C4C1C5C2C3C45", 48),
            ("C1=CC=CC=CC=C1", 8),
        ] {
            assert_eq!(of(smiles).1.orders(), expected, "{smiles}");
        }
    }

    #[test]
    fn large_molecules_take_no_time() {
        let c60 = "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41";
        assert_eq!(of(c60).1.orders(), 120);
        // A chain of an odd number of atoms is the same from both ends.
        assert_eq!(of(&format!("C{}", "OC".repeat(249))).1.orders(), 2);
        assert!(!of(&"CO".repeat(10_000)).1.complete);
        // A dendrimer has more orders than can be listed.
        let mut tree = "C".to_owned();
        (0..6).for_each(|_| tree = format!("C({tree}){tree}"));
        let (_, found) = of(&tree);
        assert!(found.complete && found.orders() == 1 << 63);
        let fluorinated = format!("C{}", "(C(F)(F)F)C".repeat(40));
        assert!(of(&fluorinated).1.complete && of(&fluorinated).1.orders() == u64::MAX);
    }

    #[test]
    fn every_order_keeps_labels_and_bonds() {
        for smiles in ["CC(C)c1ccc(C(=O)[O-])cc1C(C)(C)C", "C[Si](C)(C)C(F)(F)F", "CC(C)(C)C(=O)OCC(C)(C)C"] {
            let (graph, found) = of(smiles);
            for factor in &found.factors {
                let orders = factor.listed(100_000);
                let distinct: std::collections::BTreeSet<_> = orders.iter().collect();
                assert_eq!((distinct.len(), orders.len() as u64), (orders.len(), factor.orders()));
                for order in orders {
                    let mut whole: Vec<usize> = (0..graph.labels.len()).collect();
                    factor
                        .atoms
                        .iter()
                        .zip(&order)
                        .for_each(|(atom, to)| whole[*atom] = factor.atoms[*to as usize]);
                    for (atom, links) in graph.neighbours.iter().enumerate() {
                        assert_eq!(graph.labels[atom], graph.labels[whole[atom]]);
                        for link in links {
                            let there = graph.link(whole[atom], whole[link.atom as usize] as u32).unwrap();
                            assert_eq!(there.order, link.order);
                        }
                    }
                }
            }
        }
    }
}
