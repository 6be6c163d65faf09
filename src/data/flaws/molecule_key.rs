//! A key of a molecule that every spelling of it has, quickly computed from its text.
//!
//! It is made of the elements and of who is bonded to whom, over two bonds. Bond orders, charges, aromaticity and stereo may be
//! spelled in several ways and are left out. Different molecules may have the same key, so what shares it is compared as graphs.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use drift_core::chem::{AtomLimit, Graph, Isotopes, MolecularIdentity};
use drift_core::text::skeleton::smiles;

/// The key of a skeleton's molecule, and which of its atoms are compared.
#[derive(Debug, Clone)]
pub(super) struct MoleculeKey {
    pub key: u32,
    /// The compared atoms, if some hydrogens that a count can replace are left out.
    kept: Option<Vec<u32>>,
}

impl MoleculeKey {
    pub(super) fn of_skeleton(skeleton: &str) -> Self {
        let smiles = smiles(skeleton);
        let Ok(graph) = Graph::parse(&smiles) else {
            return MoleculeKey { key: folded(hash(&skeleton)), kept: None };
        };
        let has_hydrogens = graph.atoms.iter().any(|atom| atom.element == 1);
        let kept = has_hydrogens.then(|| kept_atoms(&smiles)).flatten();
        let mut is_kept = vec![kept.is_none(); graph.atoms.len()];
        kept.iter().flatten().for_each(|atom| is_kept[*atom as usize] = true);
        MoleculeKey { key: key(&graph, &is_kept), kept }
    }

    /// Returns the points of the compared atoms.
    pub(super) fn compared<'p>(&self, points: &'p [[f64; 3]]) -> Cow<'p, [[f64; 3]]> {
        match &self.kept {
            None => Cow::Borrowed(points),
            Some(kept) => kept.iter().filter_map(|atom| points.get(*atom as usize)).copied().collect(),
        }
    }
}

/// Returns the atoms that are compared; `None` if the molecule cannot be compared.
fn kept_atoms(smiles: &str) -> Option<Vec<u32>> {
    let identity = MolecularIdentity::from_smiles(smiles, AtomLimit::default(), Isotopes::Ignore).ok()?;
    Some(identity.kept().to_vec())
}

fn key(graph: &Graph, is_kept: &[bool]) -> u32 {
    let mut classes: Vec<u64> = graph.atoms.iter().map(|atom| hash(&atom.element)).collect();
    for _ in 0..2 {
        let mut sums = vec![0u64; classes.len()];
        for bond in &graph.bonds {
            let [a, b] = bond.atoms;
            if is_kept[a] && is_kept[b] {
                // A sum does not depend on the order of neighbours.
                sums[a] = sums[a].wrapping_add(hash(&classes[b]));
                sums[b] = sums[b].wrapping_add(hash(&classes[a]));
            }
        }
        classes = classes.iter().zip(&sums).map(|both| hash(&both)).collect();
    }
    let kept = classes.iter().zip(is_kept).filter(|(_, is_kept)| **is_kept);
    folded(kept.fold(0u64, |sum, (class, _)| sum.wrapping_add(hash(class))))
}

/// Returns the same value for the same program: keys are never stored.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn folded(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::text::skeleton::from_smiles;

    fn key_of(smiles: &str) -> MoleculeKey {
        MoleculeKey::of_skeleton(&from_smiles(smiles).unwrap())
    }

    #[test]
    fn spellings_share_a_key() {
        for (a, b) in [
            ("CCO", "OCC"),
            ("c1ccccc1O", "C1=CC=CC=C1O"),
            ("CN(=O)=O", "C[N+](=O)[O-]"),
            ("C[C@H](N)C(=O)O", "OC(=O)[C@H](C)N"),
            ("[13CH3]C", "CC"),
            ("[2H]C([2H])([2H])CO", "CCO"),
            ("[nH]1cccc1", "c1cc[nH]c1"),
            ("C[Se]C", "[CH3][Se][CH3]"),
            ("[Na+].[Cl-]", "[Cl-].[Na+]"),
        ] {
            assert_eq!(key_of(a).key, key_of(b).key, "{a} {b}");
        }
        for (a, b) in [("CCO", "COC"), ("CCCCO", "CCC(C)O"), ("Cc1ccccc1O", "Cc1ccc(O)cc1")] {
            assert_ne!(key_of(a).key, key_of(b).key, "{a} {b}");
        }
        let points = [[0.0; 3], [1.0; 3], [2.0; 3]];
        assert_eq!(&*key_of("[H]OC").compared(&points), &points[1..]);
        assert_eq!(&*key_of("COC").compared(&points), &points);
    }
}
