//! What two corpora may share.

use serde::{Deserialize, Serialize};

/// Something of a conformer that the other corpus may have too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharedKind {
    /// The text: the same skeleton with the same coordinates, however decimals are written.
    Text,
    /// The geometry, within the bound.
    Geometry,
    /// The molecule with its stereo, as written.
    Isomer,
    /// The molecule, ignoring stereo.
    Molecule,
    /// The InChIKey in the column `inchikey`.
    #[serde(rename = "inchikey")]
    InchiKey,
    /// The first block of that InChIKey, which ignores stereo, isotopes and protonation.
    #[serde(rename = "inchikey-block")]
    InchiKeyBlock,
    /// The Murcko scaffold.
    Scaffold,
}

drift_core::named!(SharedKind {
    Text: "text",
    Geometry: "geometry",
    Isomer: "isomer",
    Molecule: "molecule",
    InchiKey: "inchikey",
    InchiKeyBlock: "inchikey-block",
    Scaffold: "scaffold"
});

impl SharedKind {
    /// The kinds by which a row counts as shared unless the user names others.
    pub const DEFAULT: [SharedKind; 3] = [SharedKind::Text, SharedKind::Molecule, SharedKind::InchiKey];
}

/// Test subsets of the other corpus, as bits by their numbers ([`Subsets`](super::subsets::Subsets)).
pub(super) type SubsetBits = u64;

/// What a conformer shares, by kind: the test subsets of the other corpus that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shares([SubsetBits; SharedKind::ALL.len()]);

impl Shares {
    pub(super) fn set(&mut self, kind: SharedKind, subsets: SubsetBits) {
        self.0[kind as usize] = subsets;
    }

    pub(super) fn of(&self, kind: SharedKind) -> SubsetBits {
        self.0[kind as usize]
    }

    /// Returns whether any of these kinds is shared.
    pub(super) fn has_any(&self, kinds: &[SharedKind]) -> bool {
        kinds.iter().any(|kind| self.of(*kind) != 0)
    }

    /// Returns the shared kinds.
    pub(super) fn kinds(&self) -> impl Iterator<Item = SharedKind> {
        SharedKind::ALL.into_iter().filter(|kind| self.of(*kind) != 0)
    }
}

drift_core::counters! {
    /// Numbers of conformers by what they share.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct SharedRows {
        /// Those whose text is shared.
        pub text: u64,
        /// Those whose geometry is shared.
        pub geometry: u64,
        /// Those whose molecule is shared, with its stereo.
        pub isomer: u64,
        /// Those whose molecule is shared, ignoring stereo.
        pub molecule: u64,
        /// Those whose InChIKey is shared.
        pub inchikey: u64,
        /// Those of whose InChIKey the first block is shared.
        pub inchikey_block: u64,
        /// Those whose Murcko scaffold is shared.
        pub scaffold: u64,
    }
}

impl SharedRows {
    /// Counts a conformer that shares these kinds.
    pub(super) fn add(&mut self, kinds: impl Iterator<Item = SharedKind>) {
        kinds.for_each(|kind| *self.of_mut(kind) += 1);
    }

    /// Returns the number for a kind.
    pub fn of(&self, kind: SharedKind) -> u64 {
        *self.clone().of_mut(kind)
    }

    fn of_mut(&mut self, kind: SharedKind) -> &mut u64 {
        match kind {
            SharedKind::Text => &mut self.text,
            SharedKind::Geometry => &mut self.geometry,
            SharedKind::Isomer => &mut self.isomer,
            SharedKind::Molecule => &mut self.molecule,
            SharedKind::InchiKey => &mut self.inchikey,
            SharedKind::InchiKeyBlock => &mut self.inchikey_block,
            SharedKind::Scaffold => &mut self.scaffold,
        }
    }
}
