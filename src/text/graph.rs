//! Whether two SMILES are the same molecular graph, stereo and isotopes ignored: the users' pass test.

use smiles_rs::prelude::Smiles;

use super::smiles::{AtomLimit, Checked, Graph, SmilesProblem};

/// What is parsed alone, not compared: this takes time and memory that grow with the atoms.
pub(super) const PARSED: AtomLimit = AtomLimit(100_000);

/// The verdict of [`same_graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameGraph {
    /// The same string.
    Identical,
    /// Another spelling of the same graph.
    Equivalent,
    /// Another molecule.
    Different,
}

/// Why a SMILES was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{smiles}` is not a SMILES: {reason}")]
pub struct SmilesError {
    /// The text at fault.
    pub smiles: String,
    /// The parser's words, one line.
    pub reason: String,
}

/// Compares two SMILES: string identity first, then canonical non-isomeric forms by `smiles-rs`.
///
/// # Errors
/// If RDKit would refuse one of them, the same string or not, or one has more atoms than
/// [`MAX_HEAVY_ATOMS`](super::smiles::MAX_HEAVY_ATOMS).
pub fn same_graph(a: &str, b: &str) -> Result<SameGraph, SmilesError> {
    same_graph_within(a, b, AtomLimit::default())
}

/// The same for molecules of any size.
///
/// # Errors
/// As [`same_graph`], with this limit.
pub fn same_graph_within(a: &str, b: &str, limit: AtomLimit) -> Result<SameGraph, SmilesError> {
    let first = within(a, limit)?;
    if a == b {
        return Ok(SameGraph::Identical);
    }
    let second = within(b, limit)?;
    let same = first.elements() == second.elements() && by_smiles_rs(a, &first)? == by_smiles_rs(b, &second)?;
    Ok(if same { SameGraph::Equivalent } else { SameGraph::Different })
}

/// Whether two SMILES are one molecular graph; what RDKit would refuse, or is larger than `limit`, is none.
pub fn same_molecule(a: &str, b: &str, limit: AtomLimit) -> bool {
    matches!(same_graph_within(a, b, limit), Ok(SameGraph::Identical | SameGraph::Equivalent))
}

/// The canonical non-isomeric SMILES, in aromatic form. Comparable only with itself: not RDKit's string.
///
/// # Errors
/// If RDKit would refuse `smiles`.
pub fn canonical(smiles: &str) -> Result<String, SmilesError> {
    by_smiles_rs(smiles, &molecule(smiles)?)
}

/// A SMILES as RDKit's `MolFromSmiles` reads it, aromaticity undone: hydrogens that are atoms removed where a count says as
/// much, charges of nitro groups and their like set apart.
///
/// # Errors
/// If it breaks the grammar, an atom has too many bonds, aromatic atoms have no Kekulé structure, or there are more atoms than
/// [`MAX_HEAVY_ATOMS`](super::smiles::MAX_HEAVY_ATOMS).
pub fn molecule(smiles: &str) -> Result<Checked, SmilesError> {
    within(smiles, AtomLimit::default())
}

fn within(smiles: &str, limit: AtomLimit) -> Result<Checked, SmilesError> {
    let graph = limit.check(smiles).and_then(|()| Graph::parse(smiles));
    graph.and_then(|graph| graph.without_hydrogens().checked()).map_err(|problem| refusal(smiles, &problem))
}

pub(super) fn refusal(smiles: &str, problem: &SmilesProblem) -> SmilesError {
    SmilesError { smiles: shown(smiles), reason: problem.to_string() }
}

/// As much of a SMILES as a message shows.
fn shown(smiles: &str) -> String {
    match smiles.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &smiles[..end]),
        None => smiles.to_owned(),
    }
}

/// Characters of a SMILES in a message.
const SHOWN: usize = 100;

/// By atom, whether RDKit holds it for aromatic, in whatever form it is written.
///
/// # Errors
/// If RDKit would refuse `smiles`.
pub fn aromatic_atoms(smiles: &str) -> Result<Vec<bool>, SmilesError> {
    let graph = plain(smiles, &molecule(smiles)?)?;
    let mut aromatic = vec![false; graph.nodes().len()];
    graph.aromaticity_assignment().atom_ids().iter().for_each(|atom| aromatic[*atom] = true);
    Ok(aromatic)
}

/// A molecule as `smiles-rs` has it, without stereo and mass numbers; an error names `smiles`.
pub(super) fn plain(smiles: &str, molecule: &Checked) -> Result<Smiles, SmilesError> {
    match parse(&molecule.spelled()) {
        Ok(graph) => Ok(graph.non_isomeric()),
        Err(error) => Err(SmilesError { smiles: shown(smiles), ..error }),
    }
}

/// The canonical form of a molecule; an error names `smiles`.
fn by_smiles_rs(smiles: &str, molecule: &Checked) -> Result<String, SmilesError> {
    let graph = plain(smiles, molecule)?;
    // Kekulé structures that differ in nothing but where an aromatic ring has its double bonds meet here; a graph that cannot be
    // perceived keeps its own.
    let graph = match graph.perceive_aromaticity() {
        Ok(perceived) => perceived.into_aromaticized(),
        Err(_) => graph,
    };
    Ok(graph.canonicalize().render())
}

/// Hydrogens that are implied at each atom, in SMILES order.
///
/// # Errors
/// If `smiles` is none.
pub fn implicit_hydrogens(smiles: &str) -> Result<Vec<u8>, SmilesError> {
    Ok(parse(smiles)?.implicit_hydrogen_counts().to_vec())
}

/// The bonds of a SMILES as pairs of atoms, numbered from 0 in SMILES order; each once, the smaller number first, sorted.
///
/// # Errors
/// If `smiles` is none.
pub fn bonds(smiles: &str) -> Result<Vec<[usize; 2]>, SmilesError> {
    let graph = parse(smiles)?;
    let mut bonds: Vec<[usize; 2]> = (0..graph.nodes().len())
        .flat_map(|atom| graph.edges_for_node(atom).map(|bond| bond.endpoints()))
        .map(|[a, b]| [a.min(b), a.max(b)])
        .collect();
    bonds.sort_unstable();
    bonds.dedup();
    Ok(bonds)
}

fn parse(smiles: &str) -> Result<Smiles, SmilesError> {
    PARSED.check(smiles).map_err(|problem| refusal(smiles, &problem))?;
    smiles.parse::<Smiles>().map_err(|error| SmilesError {
        smiles: shown(smiles),
        reason: error.to_string().lines().next().unwrap_or("unknown").to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_in_smiles_order() {
        assert_eq!(bonds("CC(=O)c1ccccc1").unwrap()[..4], [[0, 1], [1, 2], [1, 3], [3, 4]]);
        assert_eq!(bonds("C1CC1.[Na+]").unwrap(), [[0, 1], [0, 2], [1, 2]]);
        assert!(bonds("C(").is_err());
    }

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
    fn molecules_beyond_the_limit_are_refused_and_those_at_it_compared() {
        let chain = |n: usize| "C".repeat(n);
        let error = same_graph(&chain(100_000), &chain(100_000)).unwrap_err();
        assert_eq!(error.reason, "more than 1000 heavy atoms");
        assert!(error.to_string().len() < 400);
        assert_eq!(
            same_graph_within("CC", "CC", AtomLimit(1)).unwrap_err().reason,
            "more than 1 heavy atoms"
        );
        assert!(
            bonds(&chain(100_001)).is_err() && !same_molecule(&chain(1_001), &chain(1_001), AtomLimit(1_000))
        );
        // Deep nesting, on a thread with the stack of a worker.
        let nested = |n: usize| format!("{}C{}", "C(".repeat(n), ")".repeat(n));
        let worker = std::thread::Builder::new().stack_size(1 << 21);
        let compared = worker.spawn(move || same_graph(&nested(999), &chain(1_000))).unwrap().join().unwrap();
        assert_eq!(compared, Ok(SameGraph::Equivalent));
    }

    #[test]
    fn hydrogens_charges_and_labels_as_rdkit_has_them() {
        let verdict = |a, b| same_graph(a, b).unwrap();
        for (a, b) in [
            ("CN(=O)=O", "C[N+](=O)[O-]"),
            ("CN=N#N", "CN=[N+]=[N-]"),
            ("O=n1ccccc1", "[O-][n+]1ccccc1"),
            ("O=Cl(=O)(=O)O", "[O-][Cl+3]([O-])([O-])O"),
            ("[H]O[H]", "O"),
            ("[H]n1cccc1", "c1cc[nH]c1"),
            ("[13CH3]C", "CC"),
            ("[2H]C", "[3H]C"),
            ("c1ccccc1c1ccccc1", "c1ccccc1-c1ccccc1"),
            ("C1:C:C:C:C:C1", "c1ccccc1"),
            ("C1.C1", "CC"),
            ("Cc1ccccc1", "C:c1ccccc1"),
            ("C1C[nH](C)CC1", "C1CN(C)CC1"),
        ] {
            assert_eq!(verdict(a, b), SameGraph::Equivalent, "{a} {b}");
        }
        for (a, b) in
            [("[2H]C", "C"), ("[CH2]C", "CC"), ("[CH3:1]C", "CC"), ("[H]/N=C/C", "N=CC"), ("CS([H])C", "CSC")]
        {
            assert_eq!(verdict(a, b), SameGraph::Different, "{a} {b}");
        }
    }

    #[test]
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
