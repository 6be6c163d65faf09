//! What the other corpus can be asked for beside molecules and geometries: texts, InChIKeys and scaffolds.

use std::collections::HashMap;

use super::inchikey::{InchiKey, InchiKeyBlock};
use super::kind::SubsetBits;
use super::spelling::Fingerprint;
use drift_core::chem::Scaffold;

/// Texts, InChIKeys and scaffolds, each with the test subsets that have it.
#[derive(Debug, Default)]
pub(super) struct Keys {
    /// [`REPEATED`] is set for texts of several conformers.
    pub texts: HashMap<Fingerprint, SubsetBits>,
    pub inchikeys: HashMap<InchiKey, SubsetBits>,
    pub blocks: HashMap<InchiKeyBlock, SubsetBits>,
    pub scaffolds: Scaffolds,
}

/// The bit of a text that several conformers have. Test subsets leave it free.
const REPEATED: SubsetBits = 1 << 63;

impl Keys {
    /// Returns the test subsets that have a text; `is_own` if the text itself was read from the other corpus, so that it counts only if
    /// another conformer there has it too.
    pub(super) fn subsets_of_text(&self, text: Fingerprint, is_own: bool) -> SubsetBits {
        let bits = self.texts.get(&text).copied().unwrap_or(0);
        if is_own && bits & REPEATED == 0 { 0 } else { bits & !REPEATED }
    }

    /// Adds what a conformer has.
    pub(super) fn add(&mut self, text: Fingerprint, inchikey: Option<InchiKey>, subset: SubsetBits) {
        let bits = self.texts.entry(text).or_default();
        *bits |= subset | if *bits == 0 { 0 } else { REPEATED };
        if let Some(key) = inchikey {
            *self.inchikeys.entry(key).or_default() |= subset;
            *self.blocks.entry(key.block()).or_default() |= subset;
        }
    }
}

/// Scaffolds, each once.
#[derive(Debug, Default)]
pub(super) struct Scaffolds {
    all: Vec<(Scaffold, SubsetBits)>,
    by_key: HashMap<u64, Vec<u32>>,
}

impl Scaffolds {
    /// Returns the number of a scaffold; `None` if it is not among these.
    pub(super) fn find(&self, scaffold: &Scaffold) -> Option<u32> {
        // Different scaffolds may have the same key.
        let mut alike = self.by_key.get(&scaffold.key()).into_iter().flatten();
        alike.find(|at| self.all[**at as usize].0.is_same(scaffold)).copied()
    }

    /// Returns the number of a scaffold, which is added if it is new.
    pub(super) fn find_or_add(&mut self, scaffold: Scaffold) -> u32 {
        if let Some(known) = self.find(&scaffold) {
            return known;
        }
        let at = self.all.len() as u32;
        self.by_key.entry(scaffold.key()).or_default().push(at);
        self.all.push((scaffold, 0));
        at
    }

    /// Adds a test subset to those that have a scaffold.
    pub(super) fn add_subset(&mut self, scaffold: u32, subset: SubsetBits) {
        self.all[scaffold as usize].1 |= subset;
    }

    /// Returns the test subsets that have a scaffold.
    pub(super) fn subsets(&self, scaffold: u32) -> SubsetBits {
        self.all[scaffold as usize].1
    }

    /// Returns the number of scaffolds.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
