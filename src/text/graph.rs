//! Whether two SMILES are the same molecular graph, stereo and isotopes ignored: the users' pass test.

use smiles_rs::prelude::Smiles;

use super::smiles::{Checked, Graph};

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
/// If RDKit would refuse one of them, the same string or not.
pub fn same_graph(a: &str, b: &str) -> Result<SameGraph, SmilesError> {
    let first = molecule(a)?;
    if a == b {
        return Ok(SameGraph::Identical);
    }
    let second = molecule(b)?;
    let same = first.hydrogens.len() == second.hydrogens.len()
        && by_smiles_rs(a, &first)? == by_smiles_rs(b, &second)?;
    Ok(if same { SameGraph::Equivalent } else { SameGraph::Different })
}

/// Whether two SMILES are one molecular graph; what RDKit would refuse is none.
pub fn same_molecule(a: &str, b: &str) -> bool {
    matches!(same_graph(a, b), Ok(SameGraph::Identical | SameGraph::Equivalent))
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
/// If it breaks the grammar, an atom has too many bonds, or aromatic atoms have no Kekulé structure.
pub fn molecule(smiles: &str) -> Result<Checked, SmilesError> {
    let checked = Graph::parse(smiles).and_then(|graph| graph.without_hydrogens().checked());
    checked.map_err(|problem| SmilesError { smiles: smiles.to_owned(), reason: problem.to_string() })
}

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
fn plain(smiles: &str, molecule: &Checked) -> Result<Smiles, SmilesError> {
    match parse(&molecule.spelled()) {
        Ok(graph) => Ok(graph.non_isomeric()),
        Err(error) => Err(SmilesError { smiles: smiles.to_owned(), ..error }),
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
    smiles.parse::<Smiles>().map_err(|error| SmilesError {
        smiles: smiles.to_owned(),
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
