//! Classes of molecules by size: rotatable bonds and heavy atoms.

use serde::{Deserialize, Serialize};

use drift_core::chem::Molecule;

/// The first numbers of rotatable bonds of each class.
const ROTATABLE_BONDS: [u64; 4] = [0, 5, 10, 15];

/// The first numbers of heavy atoms of each class.
const HEAVY_ATOMS: [u64; 4] = [0, 20, 30, 40];

/// The size of a molecule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoleculeSize {
    /// The number of heavy atoms.
    pub heavy_atoms: u64,
    /// The number of rotatable bonds, as [`Molecule::rotatable_bonds`] counts them.
    pub rotatable_bonds: u64,
}

/// What classes of molecules differ by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeKind {
    /// The number of rotatable bonds.
    RotatableBonds,
    /// The number of heavy atoms.
    HeavyAtoms,
}

/// A class of molecules. The classes are those of 3DMolGen's analysis of conformer sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stratum {
    /// What is counted.
    pub by: SizeKind,
    /// The least count.
    pub from: u64,
    /// The largest count; `None` if there is no limit.
    pub to: Option<u64>,
}

impl MoleculeSize {
    /// Returns the size of a molecule.
    pub fn from_molecule(molecule: &Molecule) -> Self {
        MoleculeSize {
            heavy_atoms: molecule.heavy_atoms() as u64,
            rotatable_bonds: molecule.rotatable_bonds() as u64,
        }
    }
}

drift_core::named!(SizeKind { RotatableBonds: "rotatable bonds", HeavyAtoms: "heavy atoms" });

impl SizeKind {
    fn of(self, size: MoleculeSize) -> u64 {
        match self {
            SizeKind::RotatableBonds => size.rotatable_bonds,
            SizeKind::HeavyAtoms => size.heavy_atoms,
        }
    }
}

impl Stratum {
    /// Returns all classes: by rotatable bonds, then by heavy atoms.
    pub fn all() -> impl Iterator<Item = Stratum> {
        let kinds = [(SizeKind::RotatableBonds, ROTATABLE_BONDS), (SizeKind::HeavyAtoms, HEAVY_ATOMS)];
        kinds.into_iter().flat_map(|(by, firsts)| {
            let next = |at: usize| firsts.get(at + 1).map(|next| next - 1);
            (0..firsts.len())
                .map(move |at| Stratum { by, from: firsts[at], to: next(at) })
                .collect::<Vec<_>>()
        })
    }

    /// Returns whether a molecule belongs to it.
    pub fn contains(self, size: MoleculeSize) -> bool {
        let count = self.by.of(size);
        count >= self.from && self.to.is_none_or(|to| count <= to)
    }

    /// Returns its name in tables: `5-9 rotatable bonds`, `40+ heavy atoms`.
    pub fn name(self) -> String {
        let kind = self.by.name();
        match self.to {
            Some(to) => format!("{}-{to} {kind}", self.from),
            None => format!("{}+ {kind}", self.from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_molecule_is_in_one_class_of_each_kind() {
        for (heavy_atoms, rotatable_bonds) in
            [(0, 0), (19, 4), (20, 5), (29, 9), (39, 14), (40, 15), (900, 300)]
        {
            let size = MoleculeSize { heavy_atoms, rotatable_bonds };
            for kind in [SizeKind::RotatableBonds, SizeKind::HeavyAtoms] {
                assert_eq!(Stratum::all().filter(|one| one.by == kind && one.contains(size)).count(), 1);
            }
        }
        let names: Vec<String> = Stratum::all().map(Stratum::name).collect();
        assert_eq!((names.len(), &*names[0], &*names[7]), (8, "0-4 rotatable bonds", "40+ heavy atoms"));
    }
}
