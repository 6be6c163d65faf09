//! Whether a SMILES is spelled like one that RDKit writes, as far as this can be told without its canonical atom order.
//!
//! 3DMolGen's encoder and its templates write RDKit's canonical SMILES. For a prompt in another spelling, their template gives a
//! different text than one that copies the prompt. [`foreign`] names a feature that RDKit never writes. It does not check the order
//! of atoms, the release of RDKit, or whether a stereo mark belongs there.

use std::collections::HashMap;

use super::graph::{Graph, Order};
use super::limit::AtomLimit;
use super::reading::SmilesReading;

/// Remarks for users of a SMILES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SmilesNotes {
    /// A feature that RDKit never writes, if one is found.
    pub foreign: Option<&'static str>,
    /// Whether it has stereo marks that are not compared with the coordinates of a text.
    pub has_unchecked_stereo: bool,
}

impl SmilesNotes {
    /// Returns the remarks on a SMILES that has been read already.
    pub fn from_reading(read: &SmilesReading<'_>) -> Self {
        let marks = &read.marks;
        // A text without its hydrogen says nothing of `C[P@H]CC`.
        let has_unchecked_stereo = marks.unchecked_count() > 0 || marks.need_hydrogens();
        SmilesNotes { foreign: foreign_in(read), has_unchecked_stereo }
    }

    /// Returns the remarks on a SMILES; none for a text that is not a SMILES.
    pub fn of_smiles(smiles: &str) -> Self {
        let read = SmilesReading::new(smiles, AtomLimit::default());
        read.map_or_else(|_| SmilesNotes::default(), |read| SmilesNotes::from_reading(&read))
    }
}

/// Returns a feature that RDKit never writes; `None` if none is found, or the text is not a SMILES.
pub fn foreign(smiles: &str) -> Option<&'static str> {
    foreign_in(&SmilesReading::new(smiles, AtomLimit::default()).ok()?)
}

/// [`foreign`] for a SMILES that has been read already.
fn foreign_in(read: &SmilesReading<'_>) -> Option<&'static str> {
    let SmilesReading { text, written, removed, molecule, .. } = read;
    if removed.contains(&true) {
        return Some("a hydrogen written as a separate atom");
    }
    if molecule
        .atoms
        .iter()
        .zip(&written.atoms)
        .any(|(sanitised, written)| sanitised.charge != written.charge)
    {
        return Some("charges that RDKit would separate");
    }
    if text.contains("[#") {
        return Some("an element by its number");
    }
    let has_brackets = || text.contains("[*]") || written.implied_brackets().next().is_some();
    bonds(written, &molecule.in_ring())
        .or_else(|| layout(text))
        .or_else(|| aromaticity(read))
        .or_else(|| has_brackets().then_some("brackets that are not needed"))
}

/// Bonds that are written without need, or left out where they are needed.
fn bonds(graph: &Graph, rings: &[bool]) -> Option<&'static str> {
    let aromatic = |atoms: [usize; 2]| atoms.iter().all(|atom| graph.atoms[*atom].aromatic);
    for (bond, in_ring) in graph.bonds.iter().zip(rings) {
        match bond.order {
            Order::Single if bond.explicit && !aromatic(bond.atoms) => {
                return Some("a single bond that need not be written");
            }
            Order::Aromatic if bond.explicit => return Some("an aromatic bond that need not be written"),
            Order::Aromatic if !in_ring => {
                return Some("an unwritten single bond between aromatic atoms");
            }
            _ => {}
        }
    }
    None
}

/// Branches at the end of their chain, and ring numbers other than the lowest free one.
fn layout(smiles: &str) -> Option<&'static str> {
    let bytes = smiles.as_bytes();
    let ends_chain = |at: usize| matches!(bytes.get(at + 1), None | Some(b')' | b'.'));
    let mut open: HashMap<u32, bool> = HashMap::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            // Digits in brackets are not ring numbers.
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
                        return Some("a ring number that is not the lowest free one");
                    }
                    open.insert(number, false);
                }
                at += length;
                // A number that an atom closes becomes free only behind all numbers of the atom.
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

/// Aromatic rings in upper case, or the reverse.
fn aromaticity(read: &SmilesReading<'_>) -> Option<&'static str> {
    let SmilesReading { molecule, aromatic: bonds, .. } = read;
    let mut aromatic = vec![false; molecule.atoms.len()];
    for (bond, _) in molecule.bonds.iter().zip(bonds).filter(|(_, is_aromatic)| **is_aromatic) {
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
            "O=[PH](O)O",
        ] {
            assert_eq!(foreign(smiles), None, "{smiles}");
        }
    }
}
