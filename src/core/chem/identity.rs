//! The identity of a SMILES, for tables of molecules: a key that all spellings share, the atom order that maps one spelling to
//! another, and whether their stereo is the same.

use super::equivalence::key;
use super::graph::{Graph, SmilesProblem};
use super::hydrogens::places_without;
use super::isotopes::Isotopes;
use super::labelled::LabelledGraph;
use super::limit::AtomLimit;
use super::molecule::{Molecule, SmilesError};
use super::open_stereo::{SMALLEST_RING, ring_size};
use super::scaffold::Scaffold;
use super::search::{BondColours, IdenticalAtoms, all_differ, colours, first_order};
use super::stereo::{DoubleBondMark, StereoMarks, is_last};
use super::stereogenic::perceived_marks;

/// A molecule that is looked up among others. The compared graph is that of [`same_graph`](super::same_graph): without stereo, the
/// hydrogens that a count can replace, and the isotopes that do not count. The isomer, with stereo and isotopes, is stored beside it.
#[derive(Debug, Clone)]
pub struct MolecularIdentity {
    /// The number of atoms in the text, hydrogens written as atoms included.
    written: usize,
    /// The atoms that are compared, by their numbers in the text, from 0.
    kept: Vec<u32>,
    graph: LabelledGraph,
    key: u64,
    /// The graph with its isotopes and stereo marks, without the marks that say nothing; `None` if `graph` is that.
    isomer: Option<LabelledGraph>,
}

impl MolecularIdentity {
    /// Reads a SMILES with at most `limit` heavy atoms.
    ///
    /// # Errors
    /// If RDKit would refuse it, or it is too large.
    pub fn from_smiles(smiles: &str, limit: AtomLimit, isotopes: Isotopes) -> Result<Self, SmilesError> {
        let (identity, _) = MolecularIdentity::read(smiles, limit, isotopes)?;
        Ok(identity)
    }

    /// Reads a SMILES, and its Murcko scaffold; `None` if it has no ring.
    ///
    /// # Errors
    /// As [`MolecularIdentity::from_smiles`].
    pub fn with_scaffold(
        smiles: &str,
        limit: AtomLimit,
        isotopes: Isotopes,
    ) -> Result<(Self, Option<Scaffold>), SmilesError> {
        let (identity, perceived) = MolecularIdentity::read(smiles, limit, isotopes)?;
        Ok((identity, Scaffold::of_molecule(&perceived.molecule, &perceived.aromatic)))
    }

    /// Reads a SMILES. The perceived molecule has its isotopes.
    fn read(
        smiles: &str,
        limit: AtomLimit,
        isotopes: Isotopes,
    ) -> Result<(Self, AromaticMolecule), SmilesError> {
        let identity = limit.check(smiles).and_then(|()| Self::perceive(smiles, isotopes));
        identity.map_err(|problem| SmilesError::new(smiles, &problem))
    }

    fn perceive(smiles: &str, isotopes: Isotopes) -> Result<(Self, AromaticMolecule), SmilesProblem> {
        let text = Graph::parse(smiles)?;
        let written = text.atoms.len();
        let (isomer, perceived) = isomer(&text)?;
        let (graph, isomer, text) = match isotopes {
            Isotopes::Ignore if text.has_labels() => {
                let text = text.without_labels();
                let molecule = Molecule::try_from(text.without_hydrogens())?;
                (LabelledGraph::of_identity(&molecule), Some(isomer), text)
            }
            _ => (isomer, None, text),
        };
        let removed = text.needless_hydrogens();
        let kept = (0u32..).zip(&removed).filter(|(_, removed)| !**removed).map(|(at, _)| at).collect();
        Ok((MolecularIdentity { written, kept, key: key(&graph), graph, isomer }, perceived))
    }

    /// Returns a hash that all spellings of the molecule share. Other molecules hardly ever have it.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Returns the number of atoms in the text, which is the number of blocks in its enriched text.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Returns the atoms that are compared, by their numbers in the text, from 0, ascending.
    pub fn kept(&self) -> &[u32] {
        &self.kept
    }

    /// Returns how the atoms of another molecule correspond to those of this one, ignoring stereo and the isotopes that do not count.
    pub fn atoms_in(&self, other: &MolecularIdentity) -> IdenticalAtoms {
        if self.key != other.key {
            return IdenticalAtoms::None;
        }
        first_order(&self.graph, &other.graph, &|_, _| true)
    }

    /// Returns whether another molecule is this one, isotopes and stereo included. Marks that say nothing, such as that of an atom with
    /// two equivalent neighbours, are ignored. If there is too much symmetry to decide, the answer is no.
    pub fn is_isomer(&self, other: &MolecularIdentity) -> bool {
        if self.key != other.key {
            return false;
        }
        let [own, other] = [self, other].map(|one| one.isomer.as_ref().unwrap_or(&one.graph));
        if own.marks.counts() != other.marks.counts() {
            return false;
        }
        let keeps =
            |last: usize, images: &[u32]| keeps_marks(&own.marks, &other.marks, last, images, &|_| false);
        matches!(first_order(own, other, &keeps), IdenticalAtoms::Order(_))
    }
}

/// A molecule, and by bond whether it is aromatic.
struct AromaticMolecule {
    molecule: Molecule,
    aromatic: Vec<bool>,
}

/// Returns the graph of a text with its isotopes and stereo marks, without the marks that say nothing; and its molecule.
fn isomer(text: &Graph) -> Result<(LabelledGraph, AromaticMolecule), SmilesProblem> {
    let removed = text.needless_hydrogens();
    let molecule = Molecule::try_from(text.without_hydrogens())?;
    let mut graph = LabelledGraph::of_identity(&molecule);
    let aromatic = molecule.aromatic_bonds();
    let marks = perceived_marks(text, &removed, &molecule, &aromatic);
    graph.marks = marks.renumbered(&places_without(&removed));
    leave_out_idle_marks(&mut graph);
    Ok((graph, AromaticMolecule { molecule, aromatic }))
}

/// Removes marks that say nothing: those that some order of equivalent atoms inverts while it keeps all others. Removing one mark
/// may make others idle, so the search is repeated.
fn leave_out_idle_marks(graph: &mut LabelledGraph) {
    let marks = std::mem::take(&mut graph.marks);
    let in_small_ring =
        |mark: &DoubleBondMark| ring_size(graph, mark.atoms[0], mark.atoms[1]) < SMALLEST_RING;
    let double_bonds = marks.double_bonds.iter().filter(|mark| !in_small_ring(mark)).copied().collect();
    graph.marks = StereoMarks { double_bonds, ..marks };
    while let Some(idle) = idle_mark(graph) {
        let marks = &mut graph.marks;
        match idle.checked_sub(marks.centres.len()) {
            None => _ = marks.centres.remove(idle),
            Some(bond) => _ = marks.double_bonds.remove(bond),
        }
    }
}

/// Returns the index of a mark that says nothing. Indices count centres first, then double bonds.
fn idle_mark(graph: &LabelledGraph) -> Option<usize> {
    let marks = &graph.marks;
    let places = marks.centres.len() + marks.double_bonds.len();
    if places == 0 {
        return None;
    }
    let [alike] = colours([graph], BondColours::Counted);
    (0..places).filter(|place| may_be_idle(graph, &alike, *place)).find(|place| {
        let keeps = |last: usize, images: &[u32]| keeps_marks(marks, marks, last, images, &|at| at == *place);
        first_order(graph, graph, &keeps) != IdenticalAtoms::None
    })
}

/// Returns whether two neighbours of a marked place look the same.
fn may_be_idle(graph: &LabelledGraph, colours: &[u64], place: usize) -> bool {
    let marks = &graph.marks;
    let Some(bond) = place.checked_sub(marks.centres.len()) else {
        let neighbours = marks.centres[place].neighbours.iter().flatten();
        return !all_differ(neighbours.map(|atom| colours[*atom]));
    };
    let mut ends = marks.double_bonds[bond].atoms.iter().map(|atom| &graph.neighbours[*atom]);
    ends.any(|links| !all_differ(links.iter().map(|link| colours[link.atom as usize])))
}

/// Returns whether each mark that is complete once `last` is placed has an image among the marks of the other molecule with the same
/// meaning there; marks that are `turned` must have the opposite meaning. Indices count the centres first, then the double bonds.
fn keeps_marks(
    own: &StereoMarks,
    other: &StereoMarks,
    last: usize,
    images: &[u32],
    turned: &dyn Fn(usize) -> bool,
) -> bool {
    let image = |atom: usize| images[atom] as usize;
    let first_bond = own.centres.len();
    let mut centres = own.centres.iter().enumerate().filter(|(_, mark)| is_last(last, mark.all()));
    let mut bonds = own.double_bonds.iter().enumerate().filter(|(_, mark)| is_last(last, mark.all()));
    let mut polyhedra = own.polyhedra.iter().filter(|mark| is_last(last, mark.all()));
    centres.all(|(at, mark)| {
        mark.image_in(&other.centres, &image).is_some_and(|image| image.inverted == turned(at))
    }) && bonds.all(|(at, mark)| {
        let image = mark.image_in(&other.double_bonds, &image);
        image.is_some_and(|image| image.inverted == turned(first_bond + at))
    }) && polyhedra.all(|mark| other.polyhedra.iter().any(|other| mark.is_that_of(other, image)))
        && (!own.unchecked.contains(&last) || other.unchecked.contains(&image(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(smiles: &str) -> MolecularIdentity {
        MolecularIdentity::from_smiles(smiles, AtomLimit::default(), Isotopes::Ignore).unwrap()
    }

    fn respected(smiles: &str) -> MolecularIdentity {
        MolecularIdentity::from_smiles(smiles, AtomLimit::default(), Isotopes::Respect).unwrap()
    }

    #[test]
    fn every_spelling_has_one_key_and_an_order() {
        for (a, b) in [
            ("CCO", "OCC"),
            ("c1ccccc1O", "C1=CC=CC=C1O"),
            ("CN(=O)=O", "C[N+](=O)[O-]"),
            ("[H]O[H]", "O"),
            ("C[C@H](N)C(=O)O", "OC(=O)C(C)N"),
            ("[13CH3]C", "CC"),
            ("[2H]C([2H])([2H])CO", "CCO"),
            ("[2H][C@](F)(Cl)Br", "FC(Cl)Br"),
        ] {
            let (a, b) = (identity(a), identity(b));
            assert_eq!(a.key(), b.key());
            let IdenticalAtoms::Order(order) = a.atoms_in(&b) else { panic!() };
            assert_eq!(order.len(), b.kept().len());
        }
        assert_eq!(identity("CCO").atoms_in(&identity("OCC")), IdenticalAtoms::Order(vec![2, 1, 0]));
        assert_eq!(identity("CCO").atoms_in(&identity("COC")), IdenticalAtoms::None);
        // Hydrogens that a count says as well are not compared.
        let water = identity("[H]O[H]");
        assert_eq!((water.written(), water.kept()), (3, &[1][..]));
        assert_eq!(identity("[2H]O[2H]").kept(), [1]);
    }

    #[test]
    fn respected_isotopes_are_compared() {
        let (water, heavy) = (respected("O"), respected("[2H]O[2H]"));
        assert_eq!((heavy.kept(), heavy.atoms_in(&water)), (&[0, 1, 2][..], IdenticalAtoms::None));
        let order = respected("CO[13CH3]").atoms_in(&respected("[13CH3]OC"));
        assert_eq!(order, IdenticalAtoms::Order(vec![2, 1, 0]));
        assert_eq!(respected("CO[13CH3]").atoms_in(&respected("COC")), IdenticalAtoms::None);
    }

    /// What RDKit 2026.09 writes as one canonical isomeric SMILES, and what it does not.
    #[test]
    fn isomers_are_those_of_rdkit() {
        for (a, b, same) in [
            ("C[C@H](N)C(=O)O", "C[C@@H](C(=O)O)N", true),
            ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", false),
            ("C[C@H](N)C(=O)O", "CC(N)C(=O)O", false),
            ("[C@H](C)(N)C(=O)O", "N[C@H](C)C(=O)O", true),
            ("[C@H](C)(N)C(=O)O", "N[C@@H](C)C(=O)O", false),
            // Marks that say nothing.
            ("C[C@H](C)O", "CC(C)O", true),
            ("C/C=C(/C)C", "CC=C(C)C", true),
            ("C1/C=C/CCC1", "C1C=CCCC1", true),
            ("F/C=C/F", "F\\C=C\\F", true),
            ("F/C=C/F", "F/C=C\\F", false),
            ("F/C=C/F", "FC=CF", false),
            // A meso compound is its mirror image; the others are not.
            ("C[C@H](O)[C@@H](C)O", "C[C@@H](O)[C@H](C)O", true),
            ("C[C@H](O)[C@H](C)O", "C[C@@H](O)[C@@H](C)O", false),
            // Marks that depend on one another.
            ("C[C@H]1CC[C@@H](C)CC1", "C[C@@H]1CC[C@H](C)CC1", true),
            ("C[C@H]1CC[C@@H](C)CC1", "C[C@H]1CC[C@H](C)CC1", false),
            ("[13CH3]C", "CC", false),
            ("C[C@H]([13CH3])O", "C[C@@H]([13CH3])O", false),
            ("[2H]C", "C", false),
            ("[2H]CC", "C([2H])C", true),
            ("C[C@H]([2H])O", "C[C@@H]([2H])O", false),
            ("C[C@H]([2H])O", "[2H][C@@H](C)O", true),
            ("C[C@]([2H])([2H])O", "CC([2H])([2H])O", true),
            ("C/C([13CH3])=C/C", "C/C([13CH3])=C\\C", false),
            ("F[Co@OH1](Cl)(Br)(I)(N)O", "F[Co@OH2](Cl)(Br)(I)(N)O", false),
            ("F[Co@OH1](Cl)(Br)(I)(N)O", "F[Co@OH1](Cl)(Br)(I)(N)O", true),
        ] {
            assert_eq!(identity(a).is_isomer(&identity(b)), same, "{a} {b}");
            assert_eq!(identity(b).is_isomer(&identity(a)), same, "{b} {a}");
            assert_eq!(respected(a).is_isomer(&respected(b)), same, "{a} {b}");
        }
    }
}
