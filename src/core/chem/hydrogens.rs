//! Hydrogens that are written as atoms of their own, `[H]O`, and mean no more than those that are implied.

use super::graph::{Atom, Bond, BondsOfAtom, Graph, Order};
use super::valences::valences;

impl Graph {
    /// The graph without hydrogen atoms that a count says as well: those with one bond, to an element other than hydrogen, that
    /// have neither a mass number nor a charge, fix no double bond's stereo, and are no corner of a polyhedron.
    pub fn without_hydrogens(&self) -> Graph {
        let removed = self.needless_hydrogens();
        if !removed.contains(&true) {
            return self.clone();
        }
        let neighbours = self.neighbours();
        let mut graph = Graph::default();
        let mut places = vec![usize::MAX; self.atoms.len()];
        for (at, atom) in self.atoms.iter().enumerate().filter(|(at, _)| !removed[*at]) {
            places[at] = graph.atoms.len();
            let lost =
                neighbours[at].iter().filter(|bond| removed[self.bonds[**bond].other(at)]).count() as u32;
            // They stay bonds to the valence: a hydrogen too many is implied no less.
            graph.atoms.push(Atom { hydrogens: atom.hydrogens + lost, ..*atom });
        }
        let kept = self.bonds.iter().filter(|bond| bond.atoms.iter().all(|atom| !removed[*atom]));
        graph.bonds.extend(kept.map(|bond| Bond { atoms: bond.atoms.map(|atom| places[atom]), ..*bond }));
        graph
    }

    /// By atom, whether it is a hydrogen that [`without_hydrogens`](Self::without_hydrogens) leaves out.
    pub fn needless_hydrogens(&self) -> Vec<bool> {
        if self.atoms.iter().all(|atom| atom.element != 1) {
            return vec![false; self.atoms.len()];
        }
        let neighbours = self.neighbours();
        (0..self.atoms.len()).map(|atom| self.is_needless(atom, &neighbours)).collect()
    }

    /// The atoms whose brackets say no more than the bare symbol: `[OH]` of an alcohol, `[C]` never.
    pub(crate) fn implied_brackets(&self) -> impl Iterator<Item = usize> {
        // Most molecules have few brackets, and many none.
        let bracketed: Vec<usize> =
            (0..self.atoms.len()).filter(|at| self.atoms[*at].is_plain_in_brackets()).collect();
        let mut bare = if bracketed.is_empty() { Graph::default() } else { self.clone() };
        let neighbours = bare.neighbours();
        bracketed.into_iter().filter(move |at| bare.is_implied(*at, &neighbours))
    }

    /// Whether an atom stands in brackets that say nothing but that no hydrogen is implied, where some would be without them: `[O]`, as
    /// of a radical. Enriched text puts all atoms into brackets, so that nothing is left of that.
    pub fn has_bare_radicals(&self) -> bool {
        let is_bare = |at: &usize| self.atoms[*at].is_plain_in_brackets() && self.atoms[*at].hydrogens == 0;
        let candidates: Vec<usize> = (0..self.atoms.len()).filter(is_bare).collect();
        if candidates.is_empty() {
            return false;
        }
        let neighbours = self.neighbours();
        let mut bare = self.clone();
        // A bond to a metal that is one too many is the metal's, in brackets or not.
        bare.make_dative(&neighbours);
        candidates.into_iter().any(|at| {
            bare.atoms[at].bracket = false;
            let implied = bare.hydrogens(at, &neighbours[at]);
            bare.atoms[at] = self.atoms[at];
            implied != Some(0)
        })
    }

    fn is_implied(&mut self, at: usize, neighbours: &[BondsOfAtom]) -> bool {
        let atom = self.atoms[at];
        // RDKit writes the hydrogens of an atom with another valence than its usual one: `O=[PH](O)O`.
        let is_usual = || self.explicit_valence(at, &neighbours[at]) == valences(atom.element)[0];
        if self.has_metal(at, neighbours) || atom.hydrogens > 0 && !is_usual() {
            return false;
        }
        self.atoms[at] = Atom { bracket: false, hydrogens: 0, ..atom };
        let implied = self.hydrogens(at, &neighbours[at]);
        self.atoms[at] = atom;
        implied == Some(atom.hydrogens)
    }

    /// The number of B, C, N, O, P and S in such brackets with hydrogens.
    pub(crate) fn needless_brackets(&self) -> usize {
        let counted =
            |at: &usize| matches!(self.atoms[*at].element, 5..=8 | 15 | 16) && self.atoms[*at].hydrogens > 0;
        self.implied_brackets().filter(counted).count()
    }

    fn is_needless(&self, at: usize, neighbours: &[BondsOfAtom]) -> bool {
        let atom = &self.atoms[at];
        let [bond] = neighbours[at][..] else { return false };
        let heavy = self.bonds[bond].other(at);
        atom.element == 1
            && (atom.isotope, atom.charge, atom.hydrogens) == (0, 0, 0)
            && !matches!(self.atoms[heavy].element, 0 | 1)
            // Of a polyhedron every neighbour is counted.
            && !self.atoms[heavy].has_polyhedral_mark()
            && !(self.bonds[bond].direction.is_some() && self.fixes_stereo(heavy, bond, neighbours))
    }

    /// Whether `bond` is the only one beside a double bond on this side, and the other side has a direction too.
    fn fixes_stereo(&self, heavy: usize, bond: usize, neighbours: &[BondsOfAtom]) -> bool {
        let [a, b] = neighbours[heavy][..] else { return false };
        let double = if a == bond { b } else { a };
        let far = self.bonds[double].other(heavy);
        self.bonds[double].order == Order::Double
            && neighbours[far].iter().any(|bond| self.bonds[*bond].direction.is_some())
    }
}
