//! Orders of atoms that are the same molecule: automorphisms of the graph of heavy atoms, labelled by element.
//!
//! Bond orders are left out, so that both oxygens of a carboxylate may change places, as in RDKit's best RMS.

/// Larger molecules get the identity alone.
const MAX_ATOMS: usize = 500;

/// How many places are tried in all, so that no molecule takes long.
const MAX_STEPS: usize = 1_000_000;

/// At most `limit` automorphisms, the identity first; fewer where the search would take long: `order[i]` is the atom in whose place atom `i` may stand.
pub(super) fn symmetries(labels: &[&str], bonds: &[[usize; 2]], limit: usize) -> Vec<Vec<usize>> {
    let n = labels.len();
    if n > MAX_ATOMS {
        return vec![(0..n).collect()];
    }
    let mut neighbours = vec![Vec::new(); n];
    for &[i, j] in bonds {
        if i < n && j < n {
            neighbours[i].push(j);
            neighbours[j].push(i);
        }
    }
    let colours = refined(labels, &neighbours);
    let mut search = Search {
        colours,
        neighbours,
        limit,
        steps: 0,
        order: vec![usize::MAX; n],
        used: vec![false; n],
        found: Vec::new(),
    };
    search.place(0);
    search.found
}

/// Colours of atoms that no automorphism mixes: elements, refined by the colours of neighbours until nothing changes.
fn refined(labels: &[&str], neighbours: &[Vec<usize>]) -> Vec<usize> {
    let numbered = |keys: Vec<(usize, Vec<usize>)>| -> Vec<usize> {
        let mut distinct = keys.clone();
        distinct.sort();
        distinct.dedup();
        // Every key is among the distinct ones.
        keys.iter().map(|key| distinct.binary_search(key).unwrap_or(0)).collect()
    };
    let mut sorted = labels.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut colours: Vec<usize> =
        labels.iter().map(|label| sorted.binary_search(label).unwrap_or(0)).collect();
    let count = |colours: &[usize]| colours.iter().collect::<std::collections::BTreeSet<_>>().len();
    loop {
        let keys = (0..colours.len()).map(|i| {
            let mut around: Vec<usize> = neighbours[i].iter().map(|&j| colours[j]).collect();
            around.sort_unstable();
            (colours[i], around)
        });
        let next = numbered(keys.collect());
        if count(&next) == count(&colours) {
            return next;
        }
        colours = next;
    }
}

struct Search {
    colours: Vec<usize>,
    neighbours: Vec<Vec<usize>>,
    limit: usize,
    steps: usize,
    order: Vec<usize>,
    used: Vec<bool>,
    found: Vec<Vec<usize>>,
}

impl Search {
    /// Places atom `at` and those behind it.
    fn place(&mut self, at: usize) {
        if at == self.order.len() {
            self.found.push(self.order.clone());
            return;
        }
        for place in self.places(at) {
            if self.found.len() == self.limit || self.steps == MAX_STEPS {
                return;
            }
            self.steps += 1;
            if !self.used[place] && self.fits(at, place) {
                self.used[place] = true;
                self.order[at] = place;
                self.place(at + 1);
                self.used[place] = false;
                self.order[at] = usize::MAX;
            }
        }
    }

    /// Where atom `at` may stand: beside a neighbour that was placed, or anywhere if there is none. Its own place comes
    /// first, so that the identity is found first.
    fn places(&self, at: usize) -> Vec<usize> {
        let placed = self.neighbours[at].iter().find(|other| **other < at);
        let mut places = match placed {
            Some(other) => self.neighbours[self.order[*other]].clone(),
            None => (0..self.order.len()).collect(),
        };
        places.sort_by_key(|place| *place != at);
        places
    }

    /// Whether atom `at` may stand in `place`: the same colour, and bonds to the atoms before it as they have there.
    fn fits(&self, at: usize, place: usize) -> bool {
        let placed = self.neighbours[at].iter().filter(|other| **other < at);
        let bonded = placed.clone().all(|other| self.neighbours[place].contains(&self.order[*other]));
        let there = self.neighbours[place].iter().filter(|other| self.used[**other]).count();
        self.colours[at] == self.colours[place] && bonded && there == placed.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_molecules() {
        let count = |labels: &[&str], bonds: &[[usize; 2]]| symmetries(labels, bonds, 1_000).len();
        // Neopentane: 4! orders of its methyls.
        assert_eq!(count(&["C"; 5], &[[0, 1], [0, 2], [0, 3], [0, 4]]), 24);
        let ring: Vec<[usize; 2]> = (0..6).map(|i| [i, (i + 1) % 6]).collect();
        assert_eq!(count(&["c"; 6], &ring), 12);
        // Acetate's oxygens, and ethanol's nothing.
        assert_eq!(count(&["C", "C", "O", "O"], &[[0, 1], [1, 2], [1, 3]]), 2);
        assert_eq!(count(&["C", "C", "O"], &[[0, 1], [1, 2]]), 1);
        assert_eq!(count(&[], &[]), 1);
        let limited = symmetries(&["C"; 5], &[[0, 1], [0, 2], [0, 3], [0, 4]], 3);
        assert_eq!((limited.len(), limited[0].clone()), (3, vec![0, 1, 2, 3, 4]));
    }

    #[test]
    fn large_molecules_take_no_time() {
        let chain = |n: usize| (1..n).map(|i| [i - 1, i]).collect::<Vec<_>>();
        let labels = |n: usize| (0..n).map(|i| ["C", "O"][i % 2]).collect::<Vec<_>>();
        // A chain of an odd number of atoms is the same from both ends.
        assert_eq!(symmetries(&labels(499), &chain(499), 1_000).len(), 2);
        assert_eq!(symmetries(&labels(20_000), &chain(20_000), 1_000).len(), 1);
        // A dendrimer has more orders than can be counted.
        let tree: Vec<[usize; 2]> = (1..255).map(|i| [(i - 1) / 2, i]).collect();
        assert_eq!(symmetries(&["C"; 255], &tree, 1_000).len(), 1_000);
    }

    #[test]
    fn every_order_keeps_the_bonds() {
        let bonds = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 6], [3, 7]];
        for order in symmetries(&["C"; 8], &bonds, 100) {
            for [i, j] in bonds {
                let moved = [order[i], order[j]];
                assert!(bonds.contains(&moved) || bonds.contains(&[moved[1], moved[0]]), "{order:?}");
            }
        }
    }
}
