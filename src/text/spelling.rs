//! Whether a SMILES is spelled as RDKit writes one, as far as that can be told without its canonical order of atoms.
//!
//! 3DMolGen's encoder and its templates write RDKit's canonical SMILES. A prompt in another spelling is given another text by
//! their template than by one that copies it. [`foreign`] names what RDKit never writes. It says nothing of the order of atoms,
//! which release of RDKit wrote it, or whether a mark of stereo belongs there.

use std::collections::HashMap;

use crate::chem::{AtomLimit, Graph, Molecule, Order, ring_bonds};

/// What in a SMILES RDKit never writes; `None` if nothing like that is found, or it is no SMILES.
pub fn foreign(smiles: &str) -> Option<&'static str> {
    AtomLimit::default().check(smiles).ok()?;
    let graph = Graph::parse(smiles).ok()?;
    if graph.needless_hydrogens().contains(&true) {
        return Some("a hydrogen that is an atom of its own");
    }
    let molecule = Molecule::try_from(graph.clone()).ok()?;
    if molecule.atoms.iter().zip(&graph.atoms).any(|(sanitised, written)| sanitised.charge != written.charge)
    {
        return Some("charges that RDKit sets apart");
    }
    let brackets = || graph.implied_brackets().next().map(|_| "brackets that are implied");
    let rings = ring_bonds(&molecule.bonds, &molecule.neighbours);
    let aromatic = || aromaticity(&molecule, &rings);
    bonds(&graph, &rings).or_else(|| layout(smiles)).or_else(aromatic).or_else(brackets)
}

/// Bonds that need not be written, or must be.
fn bonds(graph: &Graph, rings: &[bool]) -> Option<&'static str> {
    let aromatic = |atoms: [usize; 2]| atoms.iter().all(|atom| graph.atoms[*atom].aromatic);
    for (bond, in_ring) in graph.bonds.iter().zip(rings) {
        match bond.order {
            Order::Single if bond.explicit && !aromatic(bond.atoms) => {
                return Some("a single bond that is implied");
            }
            Order::Aromatic if bond.explicit => return Some("an aromatic bond that is implied"),
            Order::Aromatic if !in_ring => {
                return Some("a single bond between aromatic atoms that is not written");
            }
            _ => {}
        }
    }
    None
}

/// Branches that end their chain, and ring numbers other than the least that is free.
fn layout(smiles: &str) -> Option<&'static str> {
    let bytes = smiles.as_bytes();
    let ends_chain = |at: usize| matches!(bytes.get(at + 1), None | Some(b')' | b'.'));
    let mut open: HashMap<u32, bool> = HashMap::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'[' => at += smiles[at..].find(']')?,
            b')' if ends_chain(at) => return Some("a branch that ends its chain"),
            b'%' if bytes.get(at + 1) == Some(&b'(') => return Some("a ring number in parentheses"),
            b'%' | b'0'..=b'9' => {
                let (number, length) = match bytes[at] {
                    b'%' => (smiles.get(at + 1..at + 3)?.parse().ok()?, 3),
                    digit => (u32::from(digit - b'0'), 1),
                };
                if let Some(closed) = open.get_mut(&number).filter(|closed| !**closed) {
                    *closed = true;
                } else {
                    let least = (1..).find(|number| !open.contains_key(number))?;
                    if number != least || (length == 3) != (number > 9) {
                        return Some("a ring number that is not the least one free");
                    }
                    open.insert(number, false);
                }
                at += length;
                // A number that an atom closes is free behind the atom's numbers.
                if !matches!(bytes.get(at), Some(b'0'..=b'9' | b'%')) {
                    open.retain(|_, closed| !*closed);
                }
                continue;
            }
            b'\\' if bytes.get(at + 1) == Some(&b'\\') => return Some("a doubled backslash"),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Aromatic rings in capitals, or the other way round.
fn aromaticity(molecule: &Molecule, rings: &[bool]) -> Option<&'static str> {
    let mut aromatic = vec![false; molecule.atoms.len()];
    for (bond, _) in
        molecule.bonds.iter().zip(molecule.aromatic_among(rings)).filter(|(_, is_aromatic)| *is_aromatic)
    {
        bond.atoms.iter().for_each(|atom| aromatic[*atom] = true);
    }
    let differs = molecule.atoms.iter().zip(aromatic).any(|(atom, aromatic)| atom.aromatic != aromatic);
    differs.then_some("aromatic atoms in another form")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rdkit_never_writes() {
        for smiles in [
            "C[OH]",
            "[CH3]C",
            "[C]C(C)[NH2]",
            "C-C",
            "c1ccccc1c1ccccc1",
            "c1:c:c:c:c:c1",
            "C(C)(C)",
            "CC(=O)(O)",
            "C2CC2",
            "C%11CC%11",
            "C1CC1C2CC2",
            "C1=CC=CC=C1",
            "[H]OC",
            "CN(=O)=O",
            "C%(1)CC1",
            "c1ccc[n]c1",
        ] {
            assert!(foreign(smiles).is_some(), "{smiles}");
        }
        for smiles in [
            "CO",
            "CC(=O)O",
            "c1ccc(-c2ccccc2)cc1",
            "C[NH3+]",
            "C[C@H](N)O",
            "c1cc[nH]c1",
            "C1CC1C1CC1",
            "C1CC12CC2",
            "[CH2]C",
            "C[N]",
            "C[N+](=O)[O-]",
            "F/C=C/F",
            "[13CH3]C",
            "[2H]C",
            "C[Si](C)(C)C",
            "C(",
            "O=c1cccc[nH]1",
        ] {
            assert_eq!(foreign(smiles), None, "{smiles}");
        }
    }
}
