//! A molecule after RDKit's sanitisation: every reader turns its atoms and bonds into one of these.

use super::graph::{Atom, Bond, BondsOfAtom, Graph, Order, SmilesProblem};
use super::isotopes::Isotopes;
use super::limit::AtomLimit;

/// The limit for molecules that are only parsed, not compared: time and memory grow linearly with the atoms.
pub(crate) const READ: AtomLimit = AtomLimit(100_000);

/// A molecule that RDKit would accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Molecule {
    /// Its atoms, in the order of the text or the file. Nitro groups and similar groups are written with separated charges.
    pub atoms: Vec<Atom>,
    /// Its bonds, each once. Aromatic rings are in a Kekulé structure.
    pub bonds: Vec<Bond>,
    /// By atom, the number of its hydrogens that are not atoms themselves.
    pub hydrogens: Vec<u32>,
    /// The bonds of each atom, as indices into `bonds`.
    pub neighbours: Vec<BondsOfAtom>,
    /// By bond, whether it lies in a ring; empty if this was not needed so far.
    pub(super) in_ring: Vec<bool>,
}

/// Why a SMILES was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{smiles}` is not a SMILES: {reason}")]
pub struct SmilesError {
    /// The refused text, truncated for messages.
    pub smiles: String,
    /// What is wrong, in one line.
    pub reason: String,
}

impl SmilesError {
    /// The number of characters of a SMILES that a message shows.
    const SHOWN: usize = 100;

    pub(crate) fn new(smiles: &str, problem: &SmilesProblem) -> Self {
        SmilesError { smiles: crate::error::shortened_end(smiles, Self::SHOWN), reason: problem.to_string() }
    }
}

impl TryFrom<Graph> for Molecule {
    type Error = SmilesProblem;

    /// Sanitises the graph, as RDKit's `SanitizeMol` does before it perceives aromaticity.
    fn try_from(mut graph: Graph) -> Result<Self, SmilesProblem> {
        let neighbours = graph.neighbours();
        let (hydrogens, in_ring) = graph.sanitise(&neighbours)?;
        Ok(Molecule { atoms: graph.atoms, bonds: graph.bonds, hydrogens, neighbours, in_ring })
    }
}

impl Molecule {
    /// Reads a SMILES with its atoms as written, hydrogens included.
    ///
    /// # Errors
    /// If RDKit would refuse it, or it has more than 100,000 heavy atoms.
    pub fn of_smiles(smiles: &str) -> Result<Self, SmilesError> {
        Molecule::read(smiles, READ, |graph| graph)
    }

    /// Reads a SMILES with its atoms as written, hydrogens included, and the isotope labels that count.
    ///
    /// # Errors
    /// As [`Molecule::of_smiles`].
    pub fn of_smiles_with(smiles: &str, isotopes: Isotopes) -> Result<Self, SmilesError> {
        Molecule::read(smiles, READ, |graph| isotopes.counted(graph))
    }

    /// Reads a SMILES like RDKit's `MolFromSmiles`: hydrogen atoms that a count can replace are removed. Isotope labels that do not
    /// count are removed first.
    ///
    /// # Errors
    /// If RDKit would refuse it, or it has more heavy atoms than `limit`.
    pub fn without_hydrogens(
        smiles: &str,
        limit: AtomLimit,
        isotopes: Isotopes,
    ) -> Result<Self, SmilesError> {
        Molecule::read(smiles, limit, |graph| isotopes.counted(graph).without_hydrogens())
    }

    fn read(smiles: &str, limit: AtomLimit, of: impl Fn(Graph) -> Graph) -> Result<Self, SmilesError> {
        let graph = limit.check(smiles).and_then(|()| Graph::parse(smiles));
        graph.and_then(|graph| of(graph).try_into()).map_err(|problem| SmilesError::new(smiles, &problem))
    }

    /// Returns the pairs of bonded atoms, each once, the smaller number first, sorted.
    pub fn pairs(&self) -> Vec<[usize; 2]> {
        let mut pairs: Vec<[usize; 2]> = self
            .bonds
            .iter()
            .map(|bond| [bond.atoms[0].min(bond.atoms[1]), bond.atoms[0].max(bond.atoms[1])])
            .collect();
        pairs.sort_unstable();
        pairs
    }

    /// Returns whether an atom is a terminal O or N whose neighbour has another one with the other bond order (single or double).
    pub(crate) fn has_twin(&self, atom: usize) -> bool {
        let is_end = |at: usize| matches!(self.atoms[at].element, 7 | 8) && self.neighbours[at].len() == 1;
        let [own] = self.neighbours[atom][..] else { return false };
        let wanted = match self.bonds[own].order {
            Order::Single => Order::Double,
            Order::Double => Order::Single,
            _ => return false,
        };
        let centre = self.bonds[own].other(atom);
        let mut beside = self.neighbours[centre].iter().map(|bond| &self.bonds[*bond]);
        is_end(atom) && beside.any(|bond| bond.order == wanted && is_end(bond.other(centre)))
    }

    /// Takes atoms and bonds unchanged, where orders and charges are unknown.
    pub(crate) fn unsanitised(graph: Graph) -> Self {
        let hydrogens = graph.atoms.iter().map(|atom| atom.hydrogens).collect();
        let neighbours = graph.neighbours();
        Molecule { atoms: graph.atoms, bonds: graph.bonds, hydrogens, neighbours, in_ring: Vec::new() }
    }

    /// Returns the elements of its atoms, sorted. Molecules with different elements differ.
    pub(crate) fn elements(&self) -> Vec<u8> {
        let mut elements: Vec<u8> = self.atoms.iter().map(|atom| atom.element).collect();
        elements.sort_unstable();
        elements
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_in_smiles_order() {
        let pairs = |smiles: &str| Molecule::of_smiles(smiles).map(|molecule| molecule.pairs());
        assert_eq!(pairs("CC(=O)c1ccccc1").unwrap()[..4], [[0, 1], [1, 2], [1, 3], [3, 4]]);
        assert_eq!(pairs("C1CC1.[Na+]").unwrap(), [[0, 1], [0, 2], [1, 2]]);
        assert!(pairs("C(").is_err() && pairs("cc").is_err() && pairs(&"C".repeat(100_001)).is_err());
    }

    #[test]
    fn charges_and_radicals_are_those_of_rdkit() {
        let nitro = Molecule::of_smiles("CN(=O)=O").unwrap();
        let charges: Vec<i32> = nitro.atoms.iter().map(|atom| atom.charge).collect();
        assert!(charges[1] == 1 && charges[2] + charges[3] == -1);
        let radical = Molecule::of_smiles("[CH2]C[NH]").unwrap();
        assert_eq!((0..3).map(|at| radical.radicals(at)).collect::<Vec<_>>(), [1, 0, 1]);
    }

    #[test]
    fn errors_show_the_beginning() {
        let error = Molecule::without_hydrogens(&"C".repeat(100_000), AtomLimit::default(), Isotopes::Ignore)
            .unwrap_err();
        assert_eq!(error.reason, "more than 1000 heavy atoms");
        assert!(error.to_string().len() < 400);
    }
}
