//! A molecule as a labelled graph: the properties that a match with another molecule must preserve.
//!
//! Three kinds of matches are made, and each preserves other properties ([`LabelledGraph::of_graph`],
//! [`LabelledGraph::of_identity`], [`LabelledGraph::of_rmsd`]). One search serves all of them ([`super::search`]).

use std::collections::HashSet;

use super::brackets::{counted, hydrogens_and_charge};
use super::elements::{HYDROGEN, symbol};
use super::graph::{Graph, Order, SmilesProblem};
use super::hydrogens::places_without;
use super::molecule::Molecule;
use super::reading::{SmilesReading, sanitised};
use super::stereo::StereoMarks;

/// The properties by which atoms are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Label {
    pub element: u8,
    /// Hydrogens that are not atoms of the graph.
    pub hydrogens: u32,
    pub charge: i32,
    pub isotope: u32,
    /// The sum of its bond orders.
    pub valence: u32,
    /// Further properties that one kind of match preserves: atom map numbers, unpaired electrons.
    pub other: u32,
}

impl std::fmt::Display for Label {
    /// Written like a SMILES bracket atom: `[13CH3]`, `[NH2+]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[")?;
        if self.isotope > 0 {
            write!(f, "{}", self.isotope)?;
        }
        let symbol = symbol(self.element).unwrap_or("*");
        write!(f, "{symbol}{}]", hydrogens_and_charge(self.hydrogens, self.charge))
    }
}

/// The neighbours of an atom. More than four are rare.
pub(crate) type LinksOfAtom = smallvec::SmallVec<[Link; 4]>;

/// A neighbour of an atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub atom: u32,
    /// The bond order; `None` for a bond that matches any other: aromatic, perceived from distances, or deliberately made equal to
    /// its twin. A bond of order zero, `~`, matches only its like.
    pub order: Option<Order>,
}

impl Link {
    /// Returns whether one bond may be matched to the other.
    pub(crate) fn fits(&self, other: &Link) -> bool {
        self.order == other.order || self.order.is_none() || other.order.is_none()
    }
}

/// Which hydrogens are atoms of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hydrogens {
    /// Only those that a hydrogen count cannot replace.
    Needed,
    /// All.
    All,
}

/// Atoms, neighbours and stereo marks.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelledGraph {
    pub labels: Vec<Label>,
    /// By atom, ascending by neighbour.
    pub neighbours: Vec<LinksOfAtom>,
    /// The index of each atom in its source; `None` for a hydrogen that is not an atom there.
    pub places: Vec<Option<u32>>,
    pub marks: StereoMarks,
    /// Double bonds as written, without aromatic ones.
    pub double_bonds: Vec<[usize; 2]>,
    /// Whether its bonds have orders. If not, the graph says only which atoms are bonded, and nothing about charges.
    pub has_orders: bool,
}

impl LabelledGraph {
    /// Returns the molecule of a file, for matching with that of a SMILES: atoms by all their properties, bonds by their orders. Aromatic
    /// bonds are free only on the side of the SMILES ([`LabelledGraph::of_reading`]). One side is enough, because bond orders between
    /// atoms that agree can only differ by an alternating ring.
    ///
    /// # Errors
    /// As [`Molecule::try_from`].
    pub(crate) fn of_graph(graph: &Graph, hydrogens: Hydrogens) -> Result<Self, SmilesProblem> {
        let removed = match hydrogens {
            Hydrogens::Needed => graph.needless_hydrogens(),
            Hydrogens::All => vec![false; graph.atoms.len()],
        };
        let molecule = sanitised(graph, &removed)?;
        let mut labelled = LabelledGraph::of_molecule(&molecule, &[]);
        if graph.pairs_only {
            labelled.has_orders = false;
            labelled.neighbours.iter_mut().flatten().for_each(|link| link.order = None);
        }
        labelled.come_from(graph, &removed, &StereoMarks::default());
        if hydrogens == Hydrogens::All {
            labelled.expand();
        }
        Ok(labelled)
    }

    /// Returns the molecule of a SMILES, and which hydrogens a file must have as atoms to match it.
    ///
    /// # Errors
    /// As [`Molecule::try_from`], applied with all written hydrogens as atoms.
    pub(super) fn of_reading(read: &SmilesReading<'_>) -> Result<(Self, Hydrogens), SmilesProblem> {
        let mut labelled = LabelledGraph::of_molecule(&read.molecule, &read.aromatic);
        labelled.come_from(&read.written, &read.removed, &read.marks);
        labelled.leave_out_aromatic(&read.molecule, &read.aromatic);
        // A written hydrogen has a block, so the file must have it as an atom. A hydrogen at a nitrogen may be all that fixes the
        // stereo of `C=N`, and the handedness of `C[P@H]CC` depends on where its hydrogen is.
        let is_whole = !read.removed.contains(&true);
        let need_hydrogens = labelled.has_bare_imine() || labelled.marks.need_hydrogens();
        if is_whole && !labelled.has_hydrogens() && !need_hydrogens {
            return Ok((labelled, Hydrogens::Needed));
        }
        if !is_whole {
            let none = vec![false; read.removed.len()];
            let molecule = sanitised(&read.written, &none)?;
            let aromatic = molecule.aromatic_bonds();
            labelled = LabelledGraph::of_molecule(&molecule, &aromatic);
            labelled.come_from(&read.written, &none, &read.marks);
            labelled.leave_out_aromatic(&molecule, &aromatic);
        }
        labelled.expand();
        Ok((labelled, Hydrogens::All))
    }

    /// Sets the source of its atoms, and the stereo marks of the source, which has all its atoms.
    fn come_from(&mut self, graph: &Graph, removed: &[bool], marks: &StereoMarks) {
        let kept = (0u32..).zip(removed).filter(|(_, removed)| !**removed);
        self.places = kept.map(|(at, _)| Some(at)).collect();
        let doubles = graph.bonds.iter().filter(|bond| bond.order == Order::Double);
        // If nothing is removed, all numbers stay the same.
        if self.places.len() == removed.len() {
            self.marks = marks.clone();
            self.double_bonds = doubles.map(|bond| bond.atoms).collect();
            return;
        }
        let numbers = places_without(removed);
        self.marks = marks.renumbered(&numbers);
        self.double_bonds =
            doubles.filter_map(|bond| Some([numbers[bond.atoms[0]]?, numbers[bond.atoms[1]]?])).collect();
    }

    /// Leaves out double bonds that are aromatic, though the text writes them as in a Kekulé structure.
    fn leave_out_aromatic(&mut self, molecule: &Molecule, aromatic: &[bool]) {
        let key = |[a, b]: [usize; 2]| (a.min(b), a.max(b));
        let bonds = molecule.bonds.iter().zip(aromatic).filter(|(_, is_aromatic)| **is_aromatic);
        let aromatic: HashSet<(usize, usize)> = bonds.map(|(bond, _)| key(bond.atoms)).collect();
        self.double_bonds.retain(|atoms| !aromatic.contains(&key(*atoms)));
    }

    /// Returns the properties that RDKit's canonical SMILES without stereo distinguishes. [`Isotopes`](super::Isotopes) decides before
    /// this which labels the molecule has.
    pub(crate) fn of_identity(molecule: &Molecule) -> Self {
        let aromatic = molecule.aromatic_bonds();
        let mut labelled = LabelledGraph::of_molecule(molecule, &[]);
        for (label, atom) in labelled.labels.iter_mut().zip(&molecule.atoms) {
            // Bond orders are compared themselves, so their sums add nothing.
            *label = Label { valence: 0, other: atom.map.unwrap_or(0), ..*label };
        }
        for (bond, _) in molecule.bonds.iter().zip(aromatic).filter(|(_, is_aromatic)| *is_aromatic) {
            labelled.set_order(bond.atoms, Some(Order::Aromatic));
        }
        labelled
    }

    /// Returns the properties that RDKit's `GetBestRMS` preserves: elements, the molecule's isotopes, unpaired electrons, charges and
    /// bonds, but not hydrogens and stereo. First it makes terminal O and N equal if one has a single and one a double bond to the same
    /// neighbour (`symmetrizeConjugatedTerminalGroups`), so that the oxygens of a carboxylate or an acid, for example, may be exchanged.
    pub(crate) fn of_rmsd(molecule: &Molecule) -> Self {
        let mut labelled = LabelledGraph::of_identity(molecule);
        let alike: Vec<bool> = (0..molecule.atoms.len()).map(|atom| molecule.has_twin(atom)).collect();
        for (at, label) in labelled.labels.iter_mut().enumerate() {
            let atom = &molecule.atoms[at];
            *label = Label {
                hydrogens: 0,
                charge: if alike[at] { 0 } else { atom.charge },
                other: molecule.radicals(at).max(0).cast_unsigned() << 1 | u32::from(alike[at]),
                ..*label
            };
        }
        for bond in molecule.bonds.iter().filter(|bond| bond.atoms.iter().any(|atom| alike[*atom])) {
            labelled.set_order(bond.atoms, None);
        }
        labelled
    }

    fn of_molecule(molecule: &Molecule, free: &[bool]) -> Self {
        let mut graph = LabelledGraph {
            labels: Vec::with_capacity(molecule.atoms.len()),
            neighbours: Vec::with_capacity(molecule.atoms.len()),
            has_orders: true,
            ..LabelledGraph::default()
        };
        for (at, (atom, bonds)) in molecule.atoms.iter().zip(&molecule.neighbours).enumerate() {
            let counted = bonds.iter().map(|bond| &molecule.bonds[*bond]);
            graph.labels.push(Label {
                element: atom.element,
                hydrogens: molecule.hydrogens[at],
                charge: atom.charge,
                isotope: atom.isotope,
                // A dative bond counts at neither end.
                valence: counted
                    .filter(|bond| bond.order != Order::Dative)
                    .map(|bond| bond.valence(at))
                    .sum(),
                other: 0,
            });
            let links = bonds.iter().map(|&at_bond| {
                let bond = &molecule.bonds[at_bond];
                let is_free = free.get(at_bond).copied().unwrap_or(false);
                Link { atom: bond.other(at) as u32, order: Some(bond.order).filter(|_| !is_free) }
            });
            let mut links: LinksOfAtom = links.collect();
            links.sort_unstable_by_key(|link| link.atom);
            graph.neighbours.push(links);
        }
        graph
    }

    fn set_order(&mut self, [a, b]: [usize; 2], order: Option<Order>) {
        for (from, to) in [(a, b), (b, a)] {
            let links = self.neighbours[from].iter_mut().filter(|link| link.atom as usize == to);
            links.for_each(|link| link.order = order);
        }
    }

    /// Turns all counted hydrogens into atoms, behind all others.
    fn expand(&mut self) {
        for at in 0..self.labels.len() {
            let label = &mut self.labels[at];
            let count = std::mem::take(&mut label.hydrogens);
            label.valence += count;
            for _ in 0..count {
                let order = Some(Order::Single);
                // The new atom has the highest number, so neighbours stay in ascending order.
                self.neighbours[at].push(Link { atom: self.labels.len() as u32, order });
                self.labels.push(Label { element: HYDROGEN, valence: 1, ..Label::default() });
                self.neighbours.push(LinksOfAtom::from_slice(&[Link { atom: at as u32, order }]));
                self.places.push(None);
            }
            let hydrogen = self.labels.len() - 1;
            for mark in self.marks.centres.iter_mut().filter(|mark| count == 1 && mark.atom == at) {
                *mark = mark.with_hydrogen(hydrogen);
            }
        }
    }

    /// Returns the graph with only the marks that can be compared with coordinates in which some hydrogens have no place; the others are
    /// unchecked. `None` if no mark needs such a hydrogen.
    pub(crate) fn where_placed(&self, is_placed: &dyn Fn(usize) -> bool) -> Option<Self> {
        let marks = self.marks.where_placed(is_placed);
        (marks.centres.len() < self.marks.centres.len()).then(|| LabelledGraph { marks, ..self.clone() })
    }

    /// Removes what a graph without bond orders lacks: orders, charges and valences. The isotopes of hydrogens are kept if
    /// `isotopes` is set.
    pub(crate) fn without_orders(&self, isotopes: bool) -> Self {
        let mut graph = self.clone();
        for label in &mut graph.labels {
            let isotope = if isotopes && label.element == HYDROGEN { label.isotope } else { 0 };
            *label = Label { charge: 0, isotope, valence: 0, ..*label };
        }
        graph.neighbours.iter_mut().flatten().for_each(|link| link.order = None);
        graph.has_orders = false;
        graph
    }

    /// Returns the number of hydrogens with an isotope.
    pub(super) fn labelled_hydrogens(&self) -> usize {
        self.labels.iter().filter(|label| label.element == HYDROGEN && label.isotope > 0).count()
    }

    /// Removes all isotopes; returns whether there were any.
    pub(super) fn drop_isotopes(&mut self) -> bool {
        let had = self.labels.iter().any(|label| label.isotope > 0);
        self.labels.iter_mut().for_each(|label| label.isotope = 0);
        had
    }

    /// Returns whether a nitrogen with a double bond has a hydrogen as its only other neighbour: `C=N`.
    pub(crate) fn has_bare_imine(&self) -> bool {
        self.double_bonds.iter().flatten().any(|atom| {
            let label = &self.labels[*atom];
            (label.element, label.hydrogens, self.neighbours[*atom].len()) == (7, 1, 1)
        })
    }

    /// Returns whether some hydrogen has no place: its source counts it only.
    pub(crate) fn lacks_hydrogens(&self) -> bool {
        self.labels
            .iter()
            .zip(&self.places)
            .any(|(label, place)| label.element == HYDROGEN && place.is_none())
    }

    /// Returns whether any hydrogen is an atom of the graph.
    pub(crate) fn has_hydrogens(&self) -> bool {
        self.labels.iter().any(|label| label.element == HYDROGEN)
    }

    /// Returns the bonds, each once, the smaller atom first.
    pub(crate) fn bonds(&self) -> impl Iterator<Item = (usize, usize, Option<Order>)> {
        self.neighbours.iter().enumerate().flat_map(|(a, links)| {
            let later = links.iter().filter(move |link| link.atom as usize > a);
            later.map(move |link| (a, link.atom as usize, link.order))
        })
    }

    /// Returns the bond between two atoms.
    pub(crate) fn link(&self, from: usize, to: u32) -> Option<&Link> {
        let links = &self.neighbours[from];
        links.binary_search_by_key(&to, |link| link.atom).ok().map(|at| &links[at])
    }

    /// Returns the molecular formula: carbon, hydrogen, then the rest by symbol, `C9H8O4`.
    pub(crate) fn formula(&self) -> String {
        let mut counts = std::collections::BTreeMap::<(u8, &str), u32>::new();
        for label in &self.labels {
            for (element, count) in [(label.element, 1), (HYDROGEN, label.hydrogens)] {
                let rank = match element {
                    6 => 0,
                    HYDROGEN => 1,
                    _ => 2,
                };
                *counts.entry((rank, symbol(element).unwrap_or("*"))).or_default() += count;
            }
        }
        counts.iter().map(|((_, symbol), count)| counted(symbol, *count)).collect()
    }
}
