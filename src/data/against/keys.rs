//! What the other corpus can be asked for beside molecules and geometries: texts, InChIKeys and scaffolds.

use std::collections::HashMap;

use super::inchikey::{InchiKey, InchiKeyBlock};
use super::kind::SubsetBits;
use super::spelling::Fingerprint;
use drift_core::chem::Scaffold;

/// Texts, InChIKeys and scaffolds, each with the test subsets that have it.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub texts: HashMap<Fingerprint, TextSubsets>,
    pub inchikeys: HashMap<InchiKey, SubsetBits>,
    pub blocks: HashMap<InchiKeyBlock, SubsetBits>,
    pub scaffolds: Scaffolds,
}

/// The test subsets that have a text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TextSubsets {
    all: SubsetBits,
    /// Those in which several conformers have it.
    repeated: SubsetBits,
}

impl Keys {
    /// Returns the test subsets that have a text. `own` is the subset of the text itself, if it was read from the other corpus: there
    /// it counts only if another conformer has it too.
    pub(super) fn subsets_of_text(&self, text: Fingerprint, own: Option<SubsetBits>) -> SubsetBits {
        let TextSubsets { all, repeated } = self.texts.get(&text).copied().unwrap_or_default();
        own.map_or(all, |own| all & !own | repeated & own)
    }

    /// Adds what a conformer has.
    pub(super) fn add(&mut self, text: Fingerprint, inchikey: Option<InchiKey>, subset: SubsetBits) {
        let of_text = self.texts.entry(text).or_default();
        of_text.repeated |= of_text.all & subset;
        of_text.all |= subset;
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
