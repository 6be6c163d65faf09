//! Bemis-Murcko scaffolds as RDKit's `MurckoScaffold` defines them: the rings of a molecule, the chains between them, and the atoms
//! with a double bond to either.
//!
//! Two molecules have one scaffold exactly if `MurckoScaffoldSmiles` writes one SMILES for both. That SMILES has neither stereo nor
//! isotopes. It has the aromatic bonds of the whole molecule, and the hydrogens that RDKit puts in the place of what was cut off
//! (`MurckoDecompose` in `Code/GraphMol/ChemTransforms/ChemTransforms.cpp`, release 2026.09).

use super::equivalence::key;
use super::graph::{Atom, Bond, BondsOfAtom, Graph, Order};
use super::isotopes::Isotopes;
use super::labelled::{Label, LabelledGraph, Link, LinksOfAtom};
use super::limit::AtomLimit;
use super::molecule::{Molecule, SmilesError};
use super::search::are_isomorphic;

const CARBON: u8 = 6;

/// The scaffold of a molecule.
#[derive(Debug, Clone)]
pub struct Scaffold {
    graph: LabelledGraph,
    key: u64,
}

impl Scaffold {
    /// Returns the scaffold of a SMILES; `None` if it has no ring.
    ///
    /// # Errors
    /// If RDKit would refuse the SMILES, or it has more heavy atoms than `limit`.
    pub fn from_smiles(smiles: &str, limit: AtomLimit) -> Result<Option<Self>, SmilesError> {
        let molecule = Molecule::without_hydrogens(smiles, limit, Isotopes::Respect)?;
        let aromatic = molecule.aromatic_bonds();
        Ok(Scaffold::of_molecule(&molecule, &aromatic))
    }

    /// Returns the scaffold of a molecule whose hydrogens that a count can replace are counted; `None` if it has no ring. `aromatic` says
    /// by bond whether it is aromatic.
    pub(super) fn of_molecule(molecule: &Molecule, aromatic: &[bool]) -> Option<Self> {
        let in_ring = molecule.in_ring();
        if !in_ring.contains(&true) {
            return None;
        }
        let graph = Parts::of(molecule, &in_ring).labelled(molecule, aromatic);
        Some(Scaffold { key: key(&graph), graph })
    }

    /// Returns a hash that all molecules with this scaffold share. Other scaffolds hardly ever have it.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Returns whether another scaffold is the same. If there is too much symmetry to decide, the answer is no.
    pub fn is_same(&self, other: &Scaffold) -> bool {
        self.key == other.key && are_isomorphic(&self.graph, &other.graph)
    }
}

/// Which atoms of a molecule are in its scaffold.
struct Parts {
    /// By atom, whether it is in a ring or between rings.
    core: Vec<bool>,
    /// By atom, whether it is in the scaffold: in the core, or bonded to it by a double bond.
    kept: Vec<bool>,
}

impl Parts {
    fn of(molecule: &Molecule, in_ring: &[bool]) -> Self {
        let core = core(molecule, in_ring);
        let is_doubly_bonded = |at: usize| {
            let mut bonds = molecule.neighbours[at].iter().map(|bond| &molecule.bonds[*bond]);
            bonds.any(|bond| bond.order == Order::Double && core[bond.other(at)])
        };
        let kept = (0..core.len()).map(|at| core[at] || is_doubly_bonded(at)).collect();
        Parts { core, kept }
    }

    /// Returns the scaffold as a graph. Its atoms are in the order of the molecule.
    fn labelled(&self, molecule: &Molecule, aromatic: &[bool]) -> LabelledGraph {
        let order = |bond: usize| if aromatic[bond] { Order::Aromatic } else { molecule.bonds[bond].order };
        let mut places = vec![0u32; self.kept.len()];
        for (place, at) in (0u32..).zip(self.atoms()) {
            places[at] = place;
        }
        let counted = self.hydrogens(molecule, aromatic);
        let mut graph = LabelledGraph { has_orders: true, ..LabelledGraph::default() };
        for at in self.atoms() {
            let atom = &molecule.atoms[at];
            graph.labels.push(Label {
                element: atom.element,
                hydrogens: counted[at],
                charge: atom.charge,
                isotope: 0,
                valence: 0,
                other: atom.map.unwrap_or(0),
            });
            let bonds = self.bonds(molecule, at);
            let link =
                |bond: usize| Link { atom: places[molecule.bonds[bond].other(at)], order: Some(order(bond)) };
            let mut links: LinksOfAtom = bonds.map(link).collect();
            links.sort_unstable_by_key(|link| link.atom);
            graph.neighbours.push(links);
            graph.places.push(u32::try_from(at).ok());
        }
        graph
    }

    fn atoms(&self) -> impl Iterator<Item = usize> {
        (0..self.kept.len()).filter(|at| self.kept[*at])
    }

    /// Returns the bonds of an atom within the scaffold.
    fn bonds(&self, molecule: &Molecule, at: usize) -> impl Iterator<Item = usize> {
        molecule.neighbours[at].iter().copied().filter(move |bond| self.kept[molecule.bonds[*bond].other(at)])
    }

    /// By atom of the molecule, its hydrogens in the scaffold.
    fn hydrogens(&self, molecule: &Molecule, aromatic: &[bool]) -> Vec<u32> {
        let bonds = molecule.bonds.iter().zip(aromatic).map(|(bond, is_aromatic)| {
            let order = if *is_aromatic { Order::Aromatic } else { bond.order };
            Bond { order, ..*bond }
        });
        // Only its atoms and bonds are asked.
        let mut graph = Graph { atoms: molecule.atoms.clone(), bonds: bonds.collect(), ..Graph::default() };
        let mut hydrogens = molecule.hydrogens.clone();
        for at in self.atoms() {
            let bonds: BondsOfAtom = self.bonds(molecule, at).collect();
            if bonds.len() == molecule.neighbours[at].len() {
                continue;
            }
            let atom = molecule.atoms[at];
            let is_aromatic = bonds.iter().any(|bond| aromatic[*bond]);
            let is_cut_core = self.core[at];
            if is_cut_core && is_aromatic && (atom.element != CARBON || atom.charge == 1) {
                hydrogens[at] = 1;
                continue;
            }
            // RDKit recounts the hydrogens of core atoms, in brackets or not, and of other atoms without brackets.
            let is_recounted = is_cut_core || !atom.bracket;
            if is_recounted {
                graph.atoms[at] = Atom { bracket: false, hydrogens: 0, aromatic: is_aromatic, ..atom };
                hydrogens[at] = graph.hydrogens(at, &bonds).unwrap_or(0);
            }
        }
        hydrogens
    }
}

/// By atom, whether it is in a ring or on a path between rings: what is left once all other ends of chains are cut off.
fn core(molecule: &Molecule, in_ring: &[bool]) -> Vec<bool> {
    let in_a_ring = |at: usize| molecule.neighbours[at].iter().any(|bond| in_ring[*bond]);
    let mut degrees: Vec<usize> = molecule.neighbours.iter().map(|bonds| bonds.len()).collect();
    let is_end = |at: usize, degree: usize| degree <= 1 && !in_a_ring(at);
    let mut ends: Vec<usize> = (0..degrees.len()).filter(|at| is_end(*at, degrees[*at])).collect();
    let mut core = vec![true; degrees.len()];
    while let Some(end) = ends.pop() {
        core[end] = false;
        for bond in &molecule.neighbours[end] {
            let other = molecule.bonds[*bond].other(end);
            if core[other] {
                degrees[other] -= 1;
                // An atom comes to this degree once.
                if degrees[other] == 1 && is_end(other, 1) {
                    ends.push(other);
                }
            }
        }
    }
    core
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaffold(smiles: &str) -> Option<Scaffold> {
        Scaffold::from_smiles(smiles, AtomLimit::default()).unwrap()
    }

    /// The second column is what RDKit 2026.09 writes (`MurckoScaffoldSmiles`).
    #[test]
    fn scaffolds_are_those_of_rdkit() {
        for (smiles, of_rdkit) in [
            ("Cc1cc(Oc2nccc(CCC)c2)ccc1", "c1ccc(Oc2ccccn2)cc1"),
            ("CN1C=NC2=C1C(=O)N(C)C(=O)N2C", "O=c1[nH]c(=O)c2[nH]cnc2[nH]1"),
            ("C[C@H]1CC[C@@H](O)CC1", "C1CCCCC1"),
            ("C[N+]1(C)CCCC1", "C1CC[NH2+]C1"),
            ("C[n+]1ccccc1", "c1cc[nH+]cc1"),
            ("[O-][n+]1ccccc1", "c1cc[nH+]cc1"),
            ("CC(C)=C1CCCC1", "C=C1CCCC1"),
            ("CN=C1CCCC1", "N=C1CCCC1"),
            ("C[NH+]=C1CCCC1", "[NH+]=C1CCCC1"),
            ("O=S(=O)(c1ccccc1)N(C)CC1CC1", "O=S(=O)(NCC1CC1)c1ccccc1"),
            ("[O-][S+](c1ccccc1)c1ccccc1", "c1ccc([SH+]c2ccccc2)cc1"),
            ("OP(=O)(c1ccccc1)c1ccccc1", "O=[PH](c1ccccc1)c1ccccc1"),
            ("C[c+]1cccccc1", "c1ccc[cH+]cc1"),
            ("[13CH3]c1cc[13cH]cc1", "c1ccccc1"),
            ("[2H]c1ccccc1", "c1ccccc1"),
            ("Clc1ccccc1.OC1CC1", "C1CC1.c1ccccc1"),
            ("CB1OC(C)(C)C(C)(C)O1", "B1OCCO1"),
            ("C[Si]1(C)CCCC1", "C1CC[SiH2]C1"),
        ] {
            let (own, theirs) = (scaffold(smiles).unwrap(), scaffold(of_rdkit).unwrap());
            assert!(own.is_same(&theirs), "{smiles} {of_rdkit}: {:?}", own.graph.labels);
        }
        for smiles in ["CCO", "[Na+].[Cl-]", "[2H]O[2H]"] {
            assert!(scaffold(smiles).is_none(), "{smiles}");
        }
        for (a, b) in [("c1ccccc1", "C1CCCCC1"), ("c1ccccc1", "c1ccncc1"), ("O=C1CCCC1", "C1CCCC1")] {
            assert!(!scaffold(a).unwrap().is_same(&scaffold(b).unwrap()), "{a} {b}");
        }
    }
}
