//! Which molecule of the other corpus a text has, remembered by its skeleton.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::other::Other;
use crate::chem::{AtomLimit, MolecularIdentity};
use crate::corpus::{AtomOrder, Conformer};
use crate::text::skeleton::smiles;

/// Skeletons that are remembered, about 100 MB of them; then all are forgotten.
const REMEMBERED: usize = 1 << 21;

/// Those among them that have a molecule of the other corpus, about 100 MB of them.
const REMEMBERED_SHARED: usize = 1 << 18;

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

/// What skeletons are.
#[derive(Debug, Default)]
pub(super) struct Finder {
    known: HashMap<Fingerprint, Known>,
    shared: usize,
}

impl Finder {
    /// What the skeleton of each conformer is.
    pub(super) fn find(&mut self, other: &Other, conformers: &[Conformer]) -> Vec<Known> {
        let prints: Vec<Fingerprint> = conformers.par_iter().map(fingerprint).collect();
        if self.known.len() > REMEMBERED || self.shared > REMEMBERED_SHARED {
            (self.known, self.shared) = (HashMap::new(), 0);
        }
        let mut new: HashMap<Fingerprint, usize> = HashMap::new();
        for (at, print) in prints.iter().enumerate().filter(|(_, print)| !self.known.contains_key(print)) {
            new.entry(*print).or_insert(at);
        }
        let new: Vec<(Fingerprint, usize)> = new.into_iter().collect();
        let found: Vec<(Fingerprint, Known)> = new
            .into_par_iter()
            .map(|(print, at)| (print, other.known(identity(&conformers[at]).as_ref())))
            .collect();
        self.shared += found.iter().filter(|(_, known)| matches!(known, Known::Shared(_))).count();
        self.known.extend(found);
        prints.iter().map(|print| self.known[print].clone()).collect()
    }
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
    let identity = MolecularIdentity::of(&smiles(&conformer.skeleton), AtomLimit::default()).ok()?;
    (identity.written() == conformer.coordinates.len()).then_some(identity)
}
