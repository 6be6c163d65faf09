//! Orders of atoms that are the same molecule, as RDKit's `GetBestRMS` takes them.
//!
//! RDKit matches the molecule onto itself: elements, isotopes, unpaired electrons, charges and bond orders must agree, hydrogens
//! and stereo are left out. Before that it makes terminal O and N alike that share a neighbour by one single and one double bond
//! (`symmetrizeConjugatedTerminalGroups`, on by default), so that the oxygens of a carboxylate, of an acid or of a sulfone's
//! neighbour may change places. It lists all matches, up to a million. Here they are kept as a group: for each atom in turn,
//! where it may stand while those before it stay (C. C. Sims, 1970), so that nothing grows with their number.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::perceived::{Perceived, PerceivedAtom};
use crate::text::smiles::Order;

/// Larger molecules get the identity alone.
const MAX_ATOMS: usize = 500;

/// How many places are tried in all, so that no molecule takes long.
const MAX_STEPS: usize = 2_000_000;

/// A molecule's atoms and bonds by what a change of places must keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Labelled {
    /// By atom.
    labels: Vec<(PerceivedAtom, bool)>,
    /// By atom: its neighbours and the bonds to them.
    neighbours: Vec<Vec<(usize, BondLabel)>>,
}

/// What of a bond counts: none for those that are made alike.
type BondLabel = Option<Order>;

impl Labelled {
    /// As RDKit matches it.
    pub(super) fn new(molecule: &Perceived) -> Self {
        let mut around: Vec<Vec<(usize, Order)>> = vec![Vec::new(); molecule.atoms.len()];
        for &([a, b], order) in &molecule.bonds {
            around[a].push((b, order));
            around[b].push((a, order));
        }
        let is_terminal =
            |atom: usize| matches!(molecule.atoms[atom].element, 7 | 8) && around[atom].len() == 1;
        // Of terminal O and N, those whose neighbour has another one by the other order of bond.
        let alike: Vec<bool> = (0..around.len())
            .map(|atom| {
                let [(centre, own)] = around[atom][..] else { return false };
                let wanted = match own {
                    Order::Single => Order::Double,
                    Order::Double => Order::Single,
                    _ => return false,
                };
                let other =
                    |&(other, order): &(usize, Order)| other != atom && order == wanted && is_terminal(other);
                is_terminal(atom) && around[centre].iter().any(other)
            })
            .collect();
        let labels = molecule.atoms.iter().zip(&alike).map(|(atom, alike)| {
            let charge = if *alike { 0 } else { atom.charge };
            (PerceivedAtom { charge, ..*atom }, *alike)
        });
        let bond = |a: usize, (b, order): (usize, Order)| (b, (!alike[a] && !alike[b]).then_some(order));
        Labelled {
            labels: labels.collect(),
            neighbours: around
                .iter()
                .enumerate()
                .map(|(a, bonds)| bonds.iter().map(|other| bond(a, *other)).collect())
                .collect(),
        }
    }

    /// How many atoms.
    pub(super) fn atoms(&self) -> usize {
        self.labels.len()
    }
}

/// All orders of atoms that are the same molecule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symmetries {
    /// Groups of orders that change the places of different atoms, so that any combination of them is one too.
    pub factors: Vec<Factor>,
    /// Whether none is missing, as some are of molecules beyond [`MAX_ATOMS`] or [`MAX_STEPS`].
    pub complete: bool,
}

/// Orders that change the places of some atoms among one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Factor {
    /// The atoms, ascending.
    pub atoms: Vec<usize>,
    /// For each level, its choices, the identity first: `choice[i]` is the index in `atoms` in whose place `atoms[i]` may
    /// stand. Every order is one choice of each level, the last level first.
    pub levels: Vec<Vec<Vec<u16>>>,
}

impl Factor {
    /// How many orders; the most that fits if there are more.
    pub(super) fn orders(&self) -> u64 {
        self.levels.iter().fold(1, |product, level| product.saturating_mul(level.len() as u64))
    }
}

/// Finds them.
pub(super) fn symmetries(molecule: &Labelled) -> Symmetries {
    let n = molecule.atoms();
    if n > MAX_ATOMS {
        return Symmetries { factors: Vec::new(), complete: false };
    }
    let mut search = Search::new(molecule, molecule);
    let levels: Vec<Vec<Vec<usize>>> = (0..n).map(|fixed| search.images(fixed)).collect();
    let factors = factors(n, &levels);
    Symmetries { factors, complete: search.steps < MAX_STEPS }
}

/// The first of the atoms that `at` is together with.
fn root(parent: &mut [usize], mut at: usize) -> usize {
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
}

/// Levels whose orders move common atoms, together.
fn factors(n: usize, levels: &[Vec<Vec<usize>>]) -> Vec<Factor> {
    let mut parent: Vec<usize> = (0..n).collect();
    for (level, orders) in levels.iter().enumerate() {
        for order in orders {
            for atom in (0..n).filter(|atom| order[*atom] != *atom) {
                let (a, b) = (root(&mut parent, level), root(&mut parent, atom));
                parent[a.max(b)] = a.min(b);
            }
        }
    }
    let mut by_root: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    (0..n).for_each(|atom| by_root.entry(root(&mut parent, atom)).or_default().push(atom));
    let of_atoms = |atoms: Vec<usize>| {
        // Every order of a level moves atoms of its own factor alone, so each image is found.
        let place = |atom: usize| atoms.binary_search(&atom).unwrap_or(0) as u16;
        let choices = |level: &usize| -> Vec<Vec<u16>> {
            let identity = (0..atoms.len() as u16).collect();
            let others =
                levels[*level].iter().map(|order| atoms.iter().map(|atom| place(order[*atom])).collect());
            std::iter::once(identity).chain(others).collect()
        };
        let levels = atoms.iter().filter(|level| !levels[**level].is_empty()).map(choices).collect();
        Factor { levels, atoms }
    };
    by_root.into_values().filter(|atoms| atoms.len() > 1).map(of_atoms).collect()
}

/// Numbers for keys, the same for equal ones, and how many there are.
fn numbered<K: Ord>(keys: &[Vec<K>; 2]) -> ([Vec<usize>; 2], usize) {
    let distinct: BTreeSet<&K> = keys.iter().flatten().collect();
    let number: BTreeMap<&K, usize> = distinct.into_iter().zip(0..).collect();
    // Every key is among the distinct ones.
    let numbers = keys.each_ref().map(|keys| keys.iter().map(|key| number[key]).collect());
    (numbers, number.len())
}

/// The colours of atoms of two molecules, which no order mixes: labels, refined by the colours of neighbours until nothing
/// changes.
fn colours(molecules: [&Labelled; 2]) -> [Vec<usize>; 2] {
    let (mut colours, mut count) = numbered(&molecules.map(|molecule| molecule.labels.clone()));
    loop {
        let keys = [0, 1].map(|which| {
            let key = |atom: usize| {
                let around = molecules[which].neighbours[atom].iter();
                let mut around: Vec<(usize, BondLabel)> =
                    around.map(|(other, bond)| (colours[which][*other], *bond)).collect();
                around.sort_unstable();
                (colours[which][atom], around)
            };
            (0..molecules[which].atoms()).map(key).collect::<Vec<_>>()
        });
        let (next, found) = numbered(&keys);
        if found == count {
            return next;
        }
        (colours, count) = (next, found);
    }
}

/// Looks for places of the atoms of one molecule in another, in order.
struct Search<'m> {
    from: &'m Labelled,
    to: &'m Labelled,
    colours: [Vec<usize>; 2],
    steps: usize,
    /// By atom of the one, its place in the other.
    order: Vec<usize>,
    used: Vec<bool>,
}

impl<'m> Search<'m> {
    fn new(from: &'m Labelled, to: &'m Labelled) -> Self {
        let n = from.atoms();
        let colours = colours([from, to]);
        Search { from, to, colours, steps: 0, order: vec![usize::MAX; n], used: vec![false; n] }
    }

    /// Of a molecule in itself: with the atoms before `fixed` in their own places, one order for each other place of `fixed`.
    fn images(&mut self, fixed: usize) -> Vec<Vec<usize>> {
        let n = self.order.len();
        let mut found = Vec::new();
        for at in 0..n {
            (self.order[at], self.used[at]) = if at < fixed { (at, true) } else { (usize::MAX, false) };
        }
        for place in self.places(fixed) {
            if place != fixed && !self.used[place] && self.fits(fixed, place) {
                self.put(fixed, place);
                if self.extend(fixed + 1) {
                    found.push(self.order.clone());
                }
                (fixed..n).for_each(|at| self.take(at));
            }
        }
        found
    }

    fn put(&mut self, at: usize, place: usize) {
        self.used[place] = true;
        self.order[at] = place;
    }

    fn take(&mut self, at: usize) {
        if let Some(used) = self.used.get_mut(self.order[at]) {
            *used = false;
        }
        self.order[at] = usize::MAX;
    }

    /// Places atom `first` and those behind it; whether all have found a place. Without recursion: molecules are long.
    fn extend(&mut self, first: usize) -> bool {
        let n = self.order.len();
        let mut waiting: Vec<std::vec::IntoIter<usize>> = Vec::new();
        loop {
            let at = first + waiting.len();
            if at == n {
                return true;
            }
            waiting.push(self.places(at).into_iter());
            // Goes back to the last atom that has a place left.
            loop {
                let depth = waiting.len();
                let Some(places) = waiting.last_mut() else { return false };
                let at = first + depth - 1;
                let next = places.next();
                self.take(at);
                match next {
                    Some(_) if self.steps == MAX_STEPS => {
                        (first..n).for_each(|at| self.take(at));
                        return false;
                    }
                    Some(place) => {
                        self.steps += 1;
                        if !self.used[place] && self.fits(at, place) {
                            self.put(at, place);
                            break;
                        }
                    }
                    None => _ = waiting.pop(),
                }
            }
        }
    }

    /// Where atom `at` may stand: beside a neighbour that was placed, or anywhere if there is none. Its own place comes first, so
    /// that as few atoms move as can be.
    fn places(&self, at: usize) -> Vec<usize> {
        let placed = self.from.neighbours[at].iter().find(|(other, _)| *other < at);
        let mut places: Vec<usize> = match placed {
            Some((other, _)) => {
                self.to.neighbours[self.order[*other]].iter().map(|(place, _)| *place).collect()
            }
            None => (0..self.order.len()).collect(),
        };
        places.sort_by_key(|place| *place != at);
        places
    }

    /// Whether atom `at` may stand in `place`: the same colour, and bonds to the atoms before it as they have there.
    fn fits(&self, at: usize, place: usize) -> bool {
        if self.colours[0][at] != self.colours[1][place] {
            return false;
        }
        let placed = self.from.neighbours[at].iter().filter(|(other, _)| *other < at);
        let there = &self.to.neighbours[place];
        let bonded = placed.clone().all(|(other, bond)| there.contains(&(self.order[*other], *bond)));
        bonded && there.iter().filter(|(other, _)| self.used[*other]).count() == placed.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(smiles: &str) -> (Labelled, Symmetries) {
        let labelled = Labelled::new(&Perceived::of(smiles).unwrap());
        let found = symmetries(&labelled);
        (labelled, found)
    }

    fn count(smiles: &str) -> u64 {
        of(smiles).1.factors.iter().fold(1, |product, factor| product.saturating_mul(factor.orders()))
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
        ] {
            assert_eq!(count(smiles), expected, "{smiles}");
        }
    }

    #[test]
    fn large_molecules_take_no_time() {
        let c60 = "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41";
        assert_eq!(count(c60), 120);
        // A chain of an odd number of atoms is the same from both ends.
        assert_eq!(count(&format!("C{}", "OC".repeat(249))), 2);
        assert!(!of(&"CO".repeat(10_000)).1.complete);
        // A dendrimer has more orders than can be listed.
        let mut tree = "C".to_owned();
        (0..6).for_each(|_| tree = format!("C({tree}){tree}"));
        let (_, found) = of(&tree);
        assert!(found.complete && found.factors.iter().map(Factor::orders).max() == Some(1 << 63));
        let fluorinated = format!("C{}", "(C(F)(F)F)C".repeat(40));
        assert!(of(&fluorinated).1.complete && count(&fluorinated) == u64::MAX);
    }

    #[test]
    fn every_order_keeps_labels_and_bonds() {
        let (molecule, found) = of("CC(C)c1ccc(C(=O)[O-])cc1C(C)(C)C");
        for factor in &found.factors {
            for order in factor.levels.iter().flatten() {
                let mut whole: Vec<usize> = (0..molecule.atoms()).collect();
                factor
                    .atoms
                    .iter()
                    .zip(order)
                    .for_each(|(atom, to)| whole[*atom] = factor.atoms[*to as usize]);
                for (atom, bonds) in molecule.neighbours.iter().enumerate() {
                    assert_eq!(molecule.labels[atom], molecule.labels[whole[atom]]);
                    for (other, bond) in bonds {
                        assert!(molecule.neighbours[whole[atom]].contains(&(whole[*other], *bond)));
                    }
                }
            }
        }
    }
}
