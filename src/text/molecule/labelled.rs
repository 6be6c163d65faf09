//! A molecular graph whose atoms carry what tells molecules apart, so that a file's and a SMILES' can be compared.

use super::stereo::StereoMarks;
use super::structure::{Structure, StructureAtom};
use crate::text::elements::{HYDROGEN, symbol};
use crate::text::smiles::{Atom, Bond, Checked, Graph, Order, SmilesProblem};

/// What tells atoms apart.
///
/// Bonds have no label: where all atoms agree in charge, hydrogens and the sum of their bond orders, bonds between the same atoms can
/// differ by an alternating ring alone, as two Kekulé structures do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Label {
    pub element: u8,
    /// Hydrogens that are no atoms of the graph.
    pub hydrogens: u32,
    pub charge: i32,
    pub isotope: u32,
    /// The sum of its bond orders.
    pub valence: u32,
}

impl std::fmt::Display for Label {
    /// As SMILES has it in brackets: `[13CH3]`, `[NH2+]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[")?;
        if self.isotope > 0 {
            write!(f, "{}", self.isotope)?;
        }
        f.write_str(symbol(self.element).unwrap_or("*"))?;
        match self.hydrogens {
            0 => {}
            1 => f.write_str("H")?,
            more => write!(f, "H{more}")?,
        }
        match self.charge {
            0 => {}
            1 => f.write_str("+")?,
            -1 => f.write_str("-")?,
            charge => write!(f, "{charge:+}")?,
        }
        f.write_str("]")
    }
}

/// Which hydrogens are atoms of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hydrogens {
    /// Those alone that no count can stand for.
    Needed,
    /// All.
    All,
}

/// Atoms, neighbours and stereo marks.
#[derive(Debug, Clone)]
pub(super) struct LabelledGraph {
    pub labels: Vec<Label>,
    /// By atom, ascending.
    pub neighbours: Vec<Vec<u32>>,
    /// The number of each atom where it comes from; none for a hydrogen that is no atom there.
    pub places: Vec<Option<u32>>,
    pub marks: StereoMarks,
    /// Double bonds as they are written, aromatic ones not among them.
    pub double_bonds: Vec<[usize; 2]>,
    /// Whether a bond has an order: else the graph says what is bonded, and nothing of charges.
    pub has_orders: bool,
}

impl LabelledGraph {
    /// The molecule of a graph as it was written.
    ///
    /// # Errors
    /// As [`Graph::checked`].
    pub(super) fn of_graph(graph: &Graph, hydrogens: Hydrogens) -> Result<Self, SmilesProblem> {
        let removed = match hydrogens {
            Hydrogens::Needed => graph.needless_hydrogens(),
            Hydrogens::All => vec![false; graph.atoms.len()],
        };
        let bare = if removed.contains(&true) { graph.without_hydrogens() } else { graph.clone() };
        let mut new = 0..;
        let numbers: Vec<Option<usize>> =
            removed.iter().map(|removed| if *removed { None } else { new.next() }).collect();
        let has_orders = graph.bonds.is_empty() || graph.bonds.iter().any(|bond| bond.order != Order::Any);
        let checked = match has_orders {
            true => bare.checked()?,
            false => {
                Checked { hydrogens: bare.atoms.iter().map(|atom| atom.hydrogens).collect(), graph: bare }
            }
        };
        let mut labelled = LabelledGraph::of_checked(&checked);
        labelled.has_orders = has_orders;
        labelled.places =
            (0u32..).zip(&removed).filter(|(_, removed)| !**removed).map(|(at, _)| Some(at)).collect();
        labelled.marks = StereoMarks::of(graph).renumbered(graph, &numbers);
        let doubles = graph.bonds.iter().filter(|bond| bond.order == Order::Double);
        labelled.double_bonds =
            doubles.filter_map(|bond| Some([numbers[bond.atoms[0]]?, numbers[bond.atoms[1]]?])).collect();
        if hydrogens == Hydrogens::All {
            labelled.expand();
        }
        Ok(labelled)
    }

    /// The molecule of a file.
    ///
    /// # Errors
    /// As [`Graph::checked`].
    pub(super) fn of_structure(structure: &Structure, hydrogens: Hydrogens) -> Result<Self, SmilesProblem> {
        LabelledGraph::of_graph(&graph(structure), hydrogens)
    }

    fn of_checked(checked: &Checked) -> Self {
        let Checked { graph, hydrogens } = checked;
        let bonds = graph.neighbours();
        let label = |(at, atom): (usize, &Atom)| Label {
            element: atom.element,
            hydrogens: hydrogens[at],
            charge: atom.charge,
            isotope: atom.isotope,
            valence: bonds[at].iter().map(|bond| order(graph.bonds[*bond].order)).sum(),
        };
        let labels = graph.atoms.iter().enumerate().map(label).collect();
        let sorted = |(at, bonds): (usize, &Vec<usize>)| {
            let mut others: Vec<u32> = bonds.iter().map(|bond| graph.bonds[*bond].other(at) as u32).collect();
            others.sort_unstable();
            others
        };
        LabelledGraph {
            labels,
            neighbours: bonds.iter().enumerate().map(sorted).collect(),
            places: Vec::new(),
            marks: StereoMarks::default(),
            double_bonds: Vec::new(),
            has_orders: true,
        }
    }

    /// Makes atoms of all hydrogens that are counted, behind all others.
    fn expand(&mut self) {
        for at in 0..self.labels.len() {
            let label = &mut self.labels[at];
            let count = std::mem::take(&mut label.hydrogens);
            label.valence += count;
            for _ in 0..count {
                self.neighbours[at].push(self.labels.len() as u32);
                let hydrogen = Label { element: HYDROGEN, hydrogens: 0, charge: 0, isotope: 0, valence: 1 };
                self.labels.push(hydrogen);
                self.neighbours.push(vec![at as u32]);
                self.places.push(None);
            }
        }
    }

    /// Leaves of the labels what a graph without orders has too.
    pub(super) fn without_orders(&self) -> Self {
        let mut graph = self.clone();
        for label in &mut graph.labels {
            *label = Label { charge: 0, isotope: 0, valence: 0, ..*label };
        }
        graph.has_orders = false;
        graph
    }

    /// Whether a hydrogen is an atom of it.
    pub(super) fn has_hydrogens(&self) -> bool {
        self.labels.iter().any(|label| label.element == HYDROGEN)
    }

    /// Carbon, hydrogen, and the rest by symbol: `C9H8O4`.
    pub(super) fn formula(&self) -> String {
        let mut counts = std::collections::BTreeMap::<(u8, &str), u32>::new();
        let mut add = |element: u8, count: u32| {
            let rank = match element {
                6 => 0,
                HYDROGEN => 1,
                _ => 2,
            };
            *counts.entry((rank, symbol(element).unwrap_or("*"))).or_default() += count;
        };
        for label in &self.labels {
            add(label.element, 1);
            add(HYDROGEN, label.hydrogens);
        }
        let part = |((_, symbol), count): (&(u8, &str), &u32)| match count {
            0 => String::new(),
            1 => (*symbol).to_owned(),
            more => format!("{symbol}{more}"),
        };
        counts.iter().map(part).collect()
    }
}

/// What a bond adds to the valence of its atoms; nothing where it has no order.
fn order(order: Order) -> u32 {
    match order {
        Order::Single | Order::Aromatic => 1,
        Order::Double => 2,
        Order::Triple => 3,
        Order::Quadruple => 4,
        Order::Dative | Order::Any => 0,
    }
}

/// The graph that a SMILES of a file's molecule would have.
fn graph(structure: &Structure) -> Graph {
    let atom = |atom: &StructureAtom| Atom {
        element: atom.element,
        isotope: atom.isotope.into(),
        charge: atom.charge.into(),
        hydrogens: atom.hydrogens.into(),
        bracket: atom.no_implied,
        aromatic: false,
        chirality: None,
        map: 0,
    };
    let bond = |(atoms, order): &([u32; 2], Order)| Bond {
        atoms: atoms.map(|atom| atom as usize),
        order: *order,
        direction: None,
        explicit: true,
    };
    let mut graph = Graph {
        atoms: structure.atoms.iter().map(atom).collect(),
        bonds: structure.bonds.iter().map(bond).collect(),
        ..Graph::default()
    };
    for (atoms, order) in &structure.bonds {
        if *order == Order::Aromatic {
            atoms.iter().for_each(|atom| graph.atoms[*atom as usize].aromatic = true);
        }
    }
    set_radicals(structure, &mut graph);
    graph
}

/// Unpaired electrons take the place of implied hydrogens.
fn set_radicals(structure: &Structure, graph: &mut Graph) {
    let is_radical = |atom: &StructureAtom| atom.radicals > 0 && !atom.no_implied;
    if !structure.atoms.iter().any(is_radical) {
        return;
    }
    let neighbours = graph.neighbours();
    for (at, atom) in structure.atoms.iter().enumerate().filter(|(_, atom)| is_radical(atom)) {
        let all = graph.hydrogens(at, &neighbours[at]).unwrap_or(0);
        graph.atoms[at].hydrogens = all.saturating_sub(atom.radicals.into()).max(atom.hydrogens.into());
        graph.atoms[at].bracket = true;
    }
}
