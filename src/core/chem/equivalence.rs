//! Whether two SMILES are the same molecular graph, ignoring stereo: 3DMolGen's pass test. [`Isotopes`] says what labels mean.

use super::isotopes::Isotopes;
use super::labelled::LabelledGraph;
use super::limit::AtomLimit;
use super::molecule::{Molecule, SmilesError};
use super::search::{BondColours, IdenticalAtoms, are_isomorphic, colours, first_order};

/// The verdict of [`same_graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameGraph {
    /// The strings are equal.
    Identical,
    /// Different spellings of the same graph.
    Equivalent,
    /// Different molecules.
    Different,
}

/// Compares two SMILES: string identity first, then their graphs, ignoring isotopes.
///
/// # Errors
/// If RDKit would refuse one of them, even if the strings are equal, or if one has more heavy atoms than
/// [`MAX_HEAVY_ATOMS`](super::MAX_HEAVY_ATOMS).
pub fn same_graph(a: &str, b: &str) -> Result<SameGraph, SmilesError> {
    same_graph_within(a, b, AtomLimit::default(), Isotopes::Ignore)
}

/// Compares two SMILES like [`same_graph`], with at most `limit` heavy atoms each.
///
/// # Errors
/// As [`same_graph`], with this limit.
pub(crate) fn same_graph_within(
    a: &str,
    b: &str,
    limit: AtomLimit,
    isotopes: Isotopes,
) -> Result<SameGraph, SmilesError> {
    // Parsed before the texts are compared: a text that RDKit refuses is not a molecule, so it does not even equal itself.
    let first = Molecule::without_hydrogens(a, limit, isotopes)?;
    if a == b {
        return Ok(SameGraph::Identical);
    }
    let second = Molecule::without_hydrogens(b, limit, isotopes)?;
    Ok(if are_one(&first, &second) { SameGraph::Equivalent } else { SameGraph::Different })
}

/// Returns whether two molecules are the same graph, with the labels that they have.
fn are_one(first: &Molecule, second: &Molecule) -> bool {
    first.elements() == second.elements()
        && are_isomorphic(&LabelledGraph::of_identity(first), &LabelledGraph::of_identity(second))
}

/// Returns whether two SMILES are the same molecular graph. The answer is no if RDKit would refuse one, or one is larger than `limit`.
pub fn same_molecule(a: &str, b: &str, limit: AtomLimit, isotopes: Isotopes) -> bool {
    matches!(same_graph_within(a, b, limit, isotopes), Ok(SameGraph::Identical | SameGraph::Equivalent))
}

/// Returns whether RDKit writes two SMILES as one canonical SMILES without stereo and isotopes, after `RemoveHs`. This ignores labels
/// too, but a labelled hydrogen is an atom: `RemoveHs` keeps it. The answer is no if RDKit would refuse one, or one is larger than
/// `limit`.
pub fn same_canonical_smiles(a: &str, b: &str, limit: AtomLimit) -> bool {
    without_labels(a, limit).is_some_and(|first| {
        a == b || without_labels(b, limit).is_some_and(|second| are_one(&first, &second))
    })
}

fn without_labels(smiles: &str, limit: AtomLimit) -> Option<Molecule> {
    let mut molecule = Molecule::without_hydrogens(smiles, limit, Isotopes::Respect).ok()?;
    molecule.atoms.iter_mut().for_each(|atom| atom.isotope = 0);
    Some(molecule)
}

/// For each atom of `to`, in the order of its text, the number of the corresponding atom of `from`, from 0: the first order in
/// which the two graphs match, ignoring stereo. Isotope labels are kept if any order keeps them, and ignored otherwise. `None` if
/// the graphs do not match, or if one of them writes a hydrogen that a count can replace, since its atoms are then not those of the
/// graph.
pub fn atoms_in_order(from: &str, to: &str, limit: AtomLimit) -> Option<Vec<usize>> {
    let (mut from, mut to) = (graph_of_all_atoms(from, limit)?, graph_of_all_atoms(to, limit)?);
    let mut found = first_order(&to, &from, &|_, _| true);
    if found == IdenticalAtoms::None && (from.drop_isotopes() | to.drop_isotopes()) {
        found = first_order(&to, &from, &|_, _| true);
    }
    match found {
        IdenticalAtoms::Order(order) => Some(order.into_iter().map(|image| image as usize).collect()),
        IdenticalAtoms::None | IdenticalAtoms::Unknown => None,
    }
}

/// Returns the graph of a SMILES; `None` if hydrogens that it writes as atoms are no atoms of the graph.
fn graph_of_all_atoms(smiles: &str, limit: AtomLimit) -> Option<LabelledGraph> {
    let written = Molecule::of_smiles(smiles).ok()?.atoms.len();
    let molecule = Molecule::without_hydrogens(smiles, limit, Isotopes::Respect).ok()?;
    (molecule.atoms.len() == written).then(|| LabelledGraph::of_identity(&molecule))
}

/// Returns a hash that all SMILES of one graph share, for tables of molecules, ignoring isotopes. Other graphs hardly ever have it.
///
/// # Errors
/// As [`same_graph`].
pub fn graph_key(smiles: &str) -> Result<u64, SmilesError> {
    let molecule = Molecule::without_hydrogens(smiles, AtomLimit::default(), Isotopes::Ignore)?;
    Ok(key(&LabelledGraph::of_identity(&molecule)))
}

/// Returns the sum of the colours of the atoms, which does not depend on their order.
pub(super) fn key(graph: &LabelledGraph) -> u64 {
    let [colours] = colours([graph], BondColours::Counted);
    colours.iter().fold(0, |sum, colour| sum.wrapping_add(*colour))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_and_stereo_do_not_matter_but_bonds_do() {
        let verdict = |a, b| same_graph(a, b).unwrap();
        assert_eq!(verdict("CCO", "CCO"), SameGraph::Identical);
        assert_eq!(verdict("CCO", "OCC"), SameGraph::Equivalent);
        assert_eq!(verdict("c1ccccc1O", "C1=CC=CC=C1O"), SameGraph::Equivalent);
        assert_eq!(verdict("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"), SameGraph::Equivalent);
        assert_eq!(verdict("F/C=C/F", "F/C=C\\F"), SameGraph::Equivalent);
        assert_eq!(verdict("CCO", "CC=O"), SameGraph::Different);
        assert_eq!(verdict("C[NH3+]", "CN"), SameGraph::Different);
        assert!(same_graph("CCO", "C(").is_err());
    }

    #[test]
    fn atoms_are_found_in_another_order() {
        let order = |from, to| atoms_in_order(from, to, AtomLimit::default());
        assert_eq!(order("OCC", "CCO"), Some(vec![2, 1, 0]));
        assert_eq!(order("C1=CC=CC=C1O", "Oc1ccccc1").map(|order| order[..2].to_vec()), Some(vec![6, 5]));
        assert_eq!(order("CCO", "CCN"), None);
        assert_eq!(order("[H]OC", "CO"), None);
        assert_eq!(order("C(", "C"), None);
    }

    #[test]
    fn molecules_beyond_the_limit_are_refused_and_those_at_it_compared() {
        let chain = |n: usize| "C".repeat(n);
        let error = same_graph(&chain(100_000), &chain(100_000)).unwrap_err();
        assert_eq!(error.reason, "more than 1000 heavy atoms");
        assert!(error.to_string().len() < 400);
        assert_eq!(
            same_graph_within("CC", "CC", AtomLimit(1), Isotopes::Ignore).unwrap_err().reason,
            "more than 1 heavy atoms"
        );
        assert!(!same_molecule(&chain(1_001), &chain(1_001), AtomLimit(1_000), Isotopes::Ignore));
        // Deep nesting, on a thread with the stack of a worker.
        let nested = |n: usize| format!("{}C{}", "C(".repeat(n), ")".repeat(n));
        let worker = std::thread::Builder::new().stack_size(1 << 21);
        let compared = worker.spawn(move || same_graph(&nested(999), &chain(1_000))).unwrap().join().unwrap();
        assert_eq!(compared, Ok(SameGraph::Equivalent));
    }

    #[test]
    fn hydrogens_and_charges_as_rdkit_has_them() {
        let verdict = |a, b| same_graph(a, b).unwrap();
        for (a, b) in [
            ("CN(=O)=O", "C[N+](=O)[O-]"),
            ("CN=N#N", "CN=[N+]=[N-]"),
            ("O=n1ccccc1", "[O-][n+]1ccccc1"),
            ("O=Cl(=O)(=O)O", "[O-][Cl+3]([O-])([O-])O"),
            ("[H]O[H]", "O"),
            ("[H]n1cccc1", "c1cc[nH]c1"),
            ("c1ccccc1c1ccccc1", "c1ccccc1-c1ccccc1"),
            ("C1:C:C:C:C:C1", "c1ccccc1"),
            ("C1.C1", "CC"),
            ("Cc1ccccc1", "C:c1ccccc1"),
            ("C1C[nH](C)CC1", "C1CN(C)CC1"),
        ] {
            assert_eq!(verdict(a, b), SameGraph::Equivalent, "{a} {b}");
        }
        for (a, b) in [("[CH2]C", "CC"), ("[CH3:1]C", "CC"), ("[H]/N=C/C", "N=CC"), ("CS([H])C", "CSC")] {
            assert_eq!(verdict(a, b), SameGraph::Different, "{a} {b}");
        }
    }

    /// By RDKit 2026.09: the canonical SMILES once isotopes are set to 0 and `RemoveHs` has run; with isotopes, after `RemoveHs`
    /// alone; and without isotopes, after `RemoveHs` alone.
    #[test]
    fn isotopes_are_ignored_or_respected() {
        for (a, b, [ignored, respected, canonical]) in [
            ("[13CH3]C", "CC", [true, false, true]),
            ("[13CH3]C", "C[13CH3]", [true; 3]),
            ("[13CH3]C", "[14CH3]C", [true, false, true]),
            ("[2H]C", "C", [true, false, false]),
            ("[2H]C", "[3H]C", [true, false, true]),
            ("[2H]C([H])[2H]", "[2H]C[2H]", [true; 3]),
            ("[2H]C([2H])([2H])CO", "CCO", [true, false, false]),
            ("[2H]C([2H])([2H])CO", "OCC([2H])([2H])[2H]", [true; 3]),
            ("[2H]C([2H])([2H])CO", "CC([2H])([2H])O[2H]", [true, false, false]),
            ("[2H]O[2H]", "O", [true, false, false]),
            ("[2H]n1cccc1", "c1cc[nH]c1", [true, false, false]),
            ("[2H][Na]", "[NaH]", [true, false, false]),
            ("[2H][H]", "[H][H]", [true, false, true]),
            ("[1H]C", "C", [true, false, false]),
            ("[2H]/N=C/C", "[H]/N=C/C", [true, false, true]),
            ("[2H]C", "CC", [false; 3]),
        ] {
            let same = |isotopes| same_molecule(a, b, AtomLimit::default(), isotopes);
            assert_eq!([same(Isotopes::Ignore), same(Isotopes::Respect)], [ignored, respected], "{a} {b}");
            assert_eq!(same_canonical_smiles(a, b, AtomLimit::default()), canonical, "{a} {b}");
        }
    }

    #[test]
    fn orders_keep_labels_where_they_can() {
        let order = |from, to| atoms_in_order(from, to, AtomLimit::default());
        assert_eq!(order("CO[13CH3]", "[13CH3]OC"), Some(vec![2, 1, 0]));
        assert_eq!(order("CO[13CH3]", "COC"), Some(vec![0, 1, 2]));
        assert_eq!(order("[3H]O[2H]", "[2H]O[3H]"), Some(vec![2, 1, 0]));
        assert_eq!(order("[3H]O", "[2H]O"), Some(vec![0, 1]));
        // The plain text has no position for the labelled hydrogen.
        assert_eq!(order("O", "[2H]O"), None);
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    fn what_rdkit_refuses_is_refused_where_the_strings_are_equal_too() {
        for smiles in [
            "C(2CC1)",
            "C(N=)",
            "C(C)(C)(C)(C)C",
            "[CH5]",
            "C1CC",
            "C11",
            "C12CC12",
            "C()C",
            "(C)C",
            "C..C",
            "C.",
            ".C",
            "C==C",
            "cc",
            "c1cccc1",
            "n1cccc1",
            "c1ccccc1=O",
            "F(C)C",
            "C[N+](C)(C)(C)C",
            "[Na+++]",
            "[01C]",
            "[D]",
            "C%05CC5",
            "C/=C",
            "[B-](C)(C)(C)(C)C",
            "FP(F)(F)(F)(F)F",
            "C[H]C",
            "[C@@@H](F)(Cl)Br",
            "C<",
            "CC=O[H]",
            "c1cco2C=COC2c1",
            "\u{441}",
        ] {
            assert!(same_graph(smiles, smiles).is_err(), "{smiles}");
        }
        for smiles in [
            "C%(5)CC5",
            "CS(C)(=O)=O",
            "F[P-](F)(F)(F)(F)F",
            "FS(F)(F)(F)(F)F",
            "C[N+](C)(C)C",
            "[BH4-]",
            "O=c1cccc[nH]1",
            "[Na+].[Cl-]",
            "c1ccc2c(c1)[Fe]2",
            "[NH3][Pt]([NH3])(Cl)Cl",
            "c1cc[se]c1",
            "[Xe](F)F",
            "CI(C)C",
            "[C@TH1H](F)(Cl)Br",
            "C[Mg]Br",
            "C1=CC=CC=C1",
            "c1ccc2cc3ccccc3cc2c1",
            "c1cc[n+]([O-])cc1",
            "C=[N+]=[N-]",
            "S(=O)(=O)(O)O",
            "[CH2-2]",
            "",
            "Cn1cccc1",
        ] {
            assert_eq!(same_graph(smiles, smiles), Ok(SameGraph::Identical), "{smiles}");
        }
    }
}
