//! Hydrogens that are written as atoms of their own, `[H]O`, and mean no more than those that are implied.

use super::{Atom, Graph, Order};

impl Graph {
    /// The graph without hydrogen atoms that a count says as well: those with one bond, to an element other than hydrogen, that
    /// have neither a mass number nor a charge and fix no double bond's stereo.
    pub fn without_hydrogens(&self) -> Graph {
        let neighbours = self.neighbours();
        let removed: Vec<bool> =
            (0..self.atoms.len()).map(|atom| self.is_needless(atom, &neighbours)).collect();
        if !removed.contains(&true) {
            return self.clone();
        }
        let mut graph = Graph::default();
        let mut places = vec![usize::MAX; self.atoms.len()];
        for (at, atom) in self.atoms.iter().enumerate().filter(|(at, _)| !removed[*at]) {
            places[at] = graph.atoms.len();
            let lost =
                neighbours[at].iter().filter(|bond| removed[self.bonds[**bond].other(at)]).count() as u32;
            // A bare atom is implied its hydrogens again, but for aromatic ones other than carbon.
            let counts = atom.bracket || atom.aromatic && atom.element != 6;
            graph.atoms.push(Atom { hydrogens: atom.hydrogens + if counts { lost } else { 0 }, ..*atom });
        }
        let kept = self.bonds.iter().filter(|bond| bond.atoms.iter().all(|atom| !removed[*atom]));
        graph
            .bonds
            .extend(kept.map(|bond| super::Bond { atoms: bond.atoms.map(|atom| places[atom]), ..*bond }));
        graph
    }

    fn is_needless(&self, at: usize, neighbours: &[Vec<usize>]) -> bool {
        let atom = &self.atoms[at];
        let [bond] = neighbours[at][..] else { return false };
        let heavy = self.bonds[bond].other(at);
        atom.element == 1
            && (atom.isotope, atom.charge, atom.hydrogens) == (0, 0, 0)
            && !matches!(self.atoms[heavy].element, 0 | 1)
            && !(self.bonds[bond].directed && self.fixes_stereo(heavy, bond, neighbours))
    }

    /// Whether `bond` is the only one beside a double bond on this side, and the other side has a direction too.
    fn fixes_stereo(&self, heavy: usize, bond: usize, neighbours: &[Vec<usize>]) -> bool {
        let [a, b] = neighbours[heavy][..] else { return false };
        let double = if a == bond { b } else { a };
        let far = self.bonds[double].other(heavy);
        self.bonds[double].order == Order::Double
            && neighbours[far].iter().any(|bond| self.bonds[*bond].directed)
    }
}
