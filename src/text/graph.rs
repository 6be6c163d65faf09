//! Whether two SMILES are the same molecular graph, stereo and isotopes ignored: the users' pass test.

use smiles_rs::prelude::Smiles;

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
/// If the strings differ and one of them is no SMILES.
pub fn same_graph(a: &str, b: &str) -> Result<SameGraph, SmilesError> {
    if a == b {
        return Ok(SameGraph::Identical);
    }
    Ok(if canonical(a)? == canonical(b)? { SameGraph::Equivalent } else { SameGraph::Different })
}

/// The canonical non-isomeric SMILES, in aromatic form. Comparable only with itself: not RDKit's string.
///
/// # Errors
/// If `smiles` is none.
pub fn canonical(smiles: &str) -> Result<String, SmilesError> {
    let graph = parse(smiles)?.non_isomeric();
    // Kekule and aromatic spellings meet here; a graph that cannot be perceived keeps its own spelling.
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
}
