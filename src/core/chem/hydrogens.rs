//! Hydrogens written as atoms, `[H]O`, that mean the same as implied ones.

use super::graph::{Atom, Bond, BondsOfAtom, Graph, Order};
use super::valences::valences;

const CARBON: u8 = 6;

/// By atom, its number once some are removed; `None` for these.
pub(super) fn places_without(removed: &[bool]) -> Vec<Option<usize>> {
    let mut new = 0..;
    removed.iter().map(|removed| if *removed { None } else { new.next() }).collect()
}

impl Graph {
    /// Returns the graph without the hydrogen atoms that a count can replace: those with only one bond, to an element other than
    /// hydrogen, that have no mass number or charge, fix no double bond's stereo, and are not a vertex of a coordination polyhedron.
    pub fn without_hydrogens(&self) -> Graph {
        let removed = self.needless_hydrogens();
        if !removed.contains(&true) {
            return self.clone();
        }
        let neighbours = self.neighbours();
        let mut graph = Graph::default();
        for (at, atom) in self.atoms.iter().enumerate().filter(|(at, _)| !removed[*at]) {
            let lost =
                neighbours[at].iter().filter(|bond| removed[self.bonds[**bond].other(at)]).count() as u32;
            // Removed hydrogens still count towards the valence, so no extra one is implied.
            graph.atoms.push(Atom { hydrogens: atom.hydrogens + lost, ..*atom });
        }
        let places = places_without(&removed);
        let moved =
            |bond: &Bond| Some(Bond { atoms: [places[bond.atoms[0]]?, places[bond.atoms[1]]?], ..*bond });
        graph.bonds.extend(self.bonds.iter().filter_map(moved));
        graph
    }

    /// By atom, whether it is a hydrogen that [`without_hydrogens`](Self::without_hydrogens) removes.
    pub(crate) fn needless_hydrogens(&self) -> Vec<bool> {
        if self.atoms.iter().all(|atom| atom.element != 1) {
            return vec![false; self.atoms.len()];
        }
        let neighbours = self.neighbours();
        (0..self.atoms.len()).map(|atom| self.is_needless(atom, &neighbours)).collect()
    }

    /// Returns the atoms whose brackets say no more than the bare symbol would: `[OH]` of an alcohol, but never `[C]`.
    pub(crate) fn implied_brackets(&self) -> impl Iterator<Item = usize> {
        // Most molecules have few bracket atoms, and many have none.
        let bracketed: Vec<usize> =
            (0..self.atoms.len()).filter(|at| self.atoms[*at].is_plain_in_brackets()).collect();
        let mut bare = if bracketed.is_empty() { Graph::default() } else { self.clone() };
        let neighbours = bare.neighbours();
        bracketed.into_iter().filter(move |at| bare.is_implied(*at, &neighbours))
    }

    /// Returns whether some bracket atom would have other hydrogens without its brackets, and enriched text cannot express this
    /// difference: it puts all atoms into brackets, so the `[O]` of a radical says nothing there. 3DMolGen's validation also reads
    /// `[CH2]` as a plain carbon, with or without its hydrogens.
    pub fn has_unwritable_radicals(&self) -> bool {
        let candidates: Vec<usize> = (0..self.atoms.len())
            .filter(|at| self.atoms[*at].is_plain_in_brackets())
            .filter(|at| self.atoms[*at].hydrogens == 0 || self.atoms[*at].element == CARBON)
            .collect();
        if candidates.is_empty() {
            return false;
        }
        let neighbours = self.neighbours();
        let mut bare = self.clone();
        // An excess bond to a metal is made dative, with or without brackets.
        bare.make_dative(&neighbours);
        candidates.into_iter().any(|at| {
            let written = self.atoms[at];
            bare.atoms[at] = Atom { bracket: false, hydrogens: 0, ..written };
            let implied = bare.hydrogens(at, &neighbours[at]);
            bare.atoms[at] = written;
            implied != Some(written.hydrogens)
        })
    }

    fn is_implied(&mut self, at: usize, neighbours: &[BondsOfAtom]) -> bool {
        let atom = self.atoms[at];
        // RDKit writes the hydrogens of an atom whose valence is not its usual one: `O=[PH](O)O`.
        let is_usual = || self.explicit_valence(at, &neighbours[at]) == valences(atom.element)[0];
        if self.has_metal(at, neighbours) || atom.hydrogens > 0 && !is_usual() {
            return false;
        }
        self.atoms[at] = Atom { bracket: false, hydrogens: 0, ..atom };
        let implied = self.hydrogens(at, &neighbours[at]);
        self.atoms[at] = atom;
        implied == Some(atom.hydrogens)
    }

    /// Returns the number of atoms B, C, N, O, P and S with hydrogens in brackets that say no more than the bare symbol.
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
            && (atom.isotope, atom.charge, atom.hydrogens, atom.radicals) == (0, 0, 0, 0)
            && !matches!(self.atoms[heavy].element, 0 | 1)
            // A coordination polyhedron counts every neighbour.
            && !self.atoms[heavy].has_polyhedral_mark()
            && !(self.bonds[bond].direction.is_some() && self.fixes_stereo(heavy, bond, neighbours))
    }

    /// Returns whether `bond` is the only single bond on this side of a double bond, and the other side has a direction too.
    fn fixes_stereo(&self, heavy: usize, bond: usize, neighbours: &[BondsOfAtom]) -> bool {
        let [a, b] = neighbours[heavy][..] else { return false };
        let double = if a == bond { b } else { a };
        let far = self.bonds[double].other(heavy);
        self.bonds[double].order == Order::Double
            && neighbours[far].iter().any(|bond| self.bonds[*bond].direction.is_some())
    }
}
