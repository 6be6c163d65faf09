//! Skeletons, and what they are in the other corpus.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::corpus::{AtomOrder, Conformer};
use drift_core::chem::{AtomLimit, MolecularIdentity};
use drift_core::text::skeleton::smiles;

/// The first half of the SHA-256 of a skeleton.
pub(super) type Fingerprint = u128;

/// What is known of a skeleton.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// Its molecule is not in the other corpus.
    Absent,
    /// It is no SMILES, or too large to be compared.
    NotCompared,
    /// It is.
    Shared(Arc<Shared>),
}

/// A molecule of the other corpus as a skeleton has it.
#[derive(Debug)]
pub(super) struct Shared {
    /// Which molecule.
    pub molecule: usize,
    /// Which of its isomers; none if it has none with this stereo.
    pub isomer: Option<u32>,
    /// By atom of the molecule, the block of the skeleton; none where there is too much symmetry to tell.
    pub order: Option<Vec<u32>>,
}

/// What tells skeletons apart. The atoms of a file without SMILES have no molecule, whatever their skeleton.
pub(super) fn fingerprint(conformer: &Conformer) -> Fingerprint {
    let is_known = [u8::from(conformer.order == AtomOrder::Smiles)];
    let digest = Sha256::new().chain_update(is_known).chain_update(&*conformer.skeleton).finalize();
    digest.iter().take(16).fold(0, |value, byte| value << 8 | u128::from(*byte))
}

/// The molecule of a conformer; none if its atoms are in the order of a file, it is no SMILES, or it is too large.
pub(super) fn identity(conformer: &Conformer) -> Option<MolecularIdentity> {
    if conformer.order != AtomOrder::Smiles {
        return None;
    }
    let identity = MolecularIdentity::from_smiles(&smiles(&conformer.skeleton), AtomLimit::default()).ok()?;
    (identity.written() == conformer.coordinates.len()).then_some(identity)
}
