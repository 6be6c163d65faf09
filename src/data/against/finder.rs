//! Finds the molecule of the other corpus for each text, cached by skeleton.

use std::collections::HashMap;

use rayon::prelude::*;

use super::other::OtherCorpus;
use super::spelling::{Fingerprint, SpellingMatch, identified};
use crate::corpus::Conformer;

/// The largest number of cached skeletons, about 100 MB. Beyond it the whole cache is cleared.
const REMEMBERED: usize = 1 << 21;

/// The largest number of cached skeletons with a molecule in the other corpus, about 100 MB.
const REMEMBERED_SHARED: usize = 1 << 18;

/// A cache of the results for skeletons.
#[derive(Debug, Default)]
pub(super) struct Finder {
    known: HashMap<Fingerprint, SpellingMatch>,
    shared: usize,
}

impl Finder {
    /// Returns the result for the skeleton of each conformer, which has this fingerprint.
    pub(super) fn find(
        &mut self,
        other: &OtherCorpus,
        conformers: &[Conformer],
        prints: &[Fingerprint],
    ) -> Vec<SpellingMatch> {
        // All are dropped at once: the conformers of a molecule mostly follow each other.
        if self.known.len() > REMEMBERED || self.shared > REMEMBERED_SHARED {
            (self.known, self.shared) = (HashMap::new(), 0);
        }
        let mut new: HashMap<Fingerprint, usize> = HashMap::new();
        for (at, print) in prints.iter().enumerate().filter(|(_, print)| !self.known.contains_key(print)) {
            new.entry(*print).or_insert(at);
        }
        let new: Vec<(Fingerprint, usize)> = new.into_iter().collect();
        let found: Vec<(Fingerprint, SpellingMatch)> = new
            .into_par_iter()
            .map(|(print, at)| (print, other.known(identified(&conformers[at], other.isotopes).as_ref())))
            .collect();
        self.shared += found.iter().filter(|(_, known)| matches!(known, SpellingMatch::Shared(_))).count();
        self.known.extend(found);
        prints.iter().map(|print| self.known[print].clone()).collect()
    }
}
