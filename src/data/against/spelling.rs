//! Skeletons, and what the other corpus has for them.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::corpus::{AtomOrder, Conformer};
use drift_core::chem::{AtomLimit, Isotopes, MolecularIdentity, Scaffold};
use drift_core::text::skeleton::smiles;

/// The first half of the SHA-256 of a skeleton.
pub(crate) type Fingerprint = u128;

/// The result for a skeleton.
#[derive(Debug, Clone)]
pub(super) enum SpellingMatch {
    /// Its molecule is not in the other corpus. The number of its scaffold there; `None` if there is no such scaffold.
    Absent(Option<u32>),
    /// It is not a SMILES, or too large to compare.
    NotCompared,
    /// Its molecule is in the other corpus.
    Shared(Arc<SkeletonMapping>),
}

/// How a skeleton maps to a molecule of the other corpus.
#[derive(Debug)]
pub(super) struct SkeletonMapping {
    /// The index of the molecule.
    pub molecule: usize,
    /// The index of its isomer; `None` if no isomer has this stereo.
    pub isomer: Option<u32>,
    /// For each atom of the molecule, the block of the skeleton; `None` if there is too much symmetry to determine it.
    pub order: Option<Vec<u32>>,
    /// The number of its scaffold; `None` if it has no ring.
    pub scaffold: Option<u32>,
}

/// Returns a hash that identifies skeletons. Atoms in the order of a file without SMILES get a different hash, because they have no
/// molecule.
pub(crate) fn fingerprint(conformer: &Conformer) -> Fingerprint {
    let is_known = [u8::from(conformer.order == AtomOrder::Smiles)];
    let digest = Sha256::new().chain_update(is_known).chain_update(&*conformer.skeleton).finalize();
    digest.iter().take(16).fold(0, |value, byte| value << 8 | u128::from(*byte))
}

/// A molecule to look up, and its scaffold; `None` if it has no ring.
#[derive(Debug)]
pub(super) struct MoleculeIdentity {
    pub identity: MolecularIdentity,
    pub scaffold: Option<Scaffold>,
}

/// Returns the molecule of a conformer; `None` if its atoms are in file order, its text is not a SMILES, or it is too large.
pub(super) fn identified(conformer: &Conformer, isotopes: Isotopes) -> Option<MoleculeIdentity> {
    if conformer.order != AtomOrder::Smiles {
        return None;
    }
    let smiles = smiles(&conformer.skeleton);
    let (identity, scaffold) =
        MolecularIdentity::with_scaffold(&smiles, AtomLimit::default(), isotopes).ok()?;
    (identity.written() == conformer.coordinates.len()).then_some(MoleculeIdentity { identity, scaffold })
}
