//! Which bytes may stand beside each other in texts. A token with two neighbours that no text has occurs in none.

use std::collections::BTreeSet;

/// The bytes of texts, and the pairs of neighbours among them.
pub(crate) struct BytePairs {
    bytes: BTreeSet<u8>,
    /// Indexed by the first and the second byte of a pair.
    pairs: Vec<bool>,
}

impl BytePairs {
    pub(crate) fn new() -> Self {
        BytePairs { bytes: BTreeSet::new(), pairs: vec![false; 1 << 16] }
    }

    /// Adds all pairs of a byte of the first set before one of the second.
    pub(crate) fn add(&mut self, before: &BTreeSet<u8>, after: &BTreeSet<u8>) {
        self.bytes.extend(before.iter().chain(after));
        for a in before {
            after.iter().for_each(|b| self.pairs[index(*a, *b)] = true);
        }
    }

    /// Adds the neighbours of a text.
    pub(crate) fn add_text(&mut self, text: &[u8]) {
        self.bytes.extend(text);
        text.windows(2).for_each(|pair| self.pairs[index(pair[0], pair[1])] = true);
    }

    /// Returns whether a text may hold some bytes, as far as pairs tell.
    pub(crate) fn may_hold(&self, bytes: &[u8]) -> bool {
        match bytes {
            [byte] => self.bytes.contains(byte),
            _ => bytes.windows(2).all(|pair| self.pairs[index(pair[0], pair[1])]),
        }
    }

    /// Returns the bytes of texts.
    pub(crate) fn bytes(&self) -> &BTreeSet<u8> {
        &self.bytes
    }
}

fn index(a: u8, b: u8) -> usize {
    usize::from(a) << 8 | usize::from(b)
}
