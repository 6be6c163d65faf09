//! Seeded samples of a whole corpus, drawn in one pass and independent of the number of threads.
//!
//! Every item has a random key that depends on the seed and the item. A sample of size k consists of the items with the k smallest
//! keys, wherever they are in the corpus.

use std::collections::BTreeMap;

use drift_core::io;

/// The items with the smallest keys so far. Items with equal keys are the same.
#[derive(Debug, Clone)]
pub(crate) struct Reservoir<T> {
    capacity: usize,
    kept: BTreeMap<u64, T>,
}

impl<T> Reservoir<T> {
    /// Returns a sample with room for `capacity` items.
    pub(crate) fn new(capacity: usize) -> Self {
        Reservoir { capacity, kept: BTreeMap::new() }
    }

    /// Returns whether an item with this key would be kept.
    pub(crate) fn takes(&self, key: u64) -> bool {
        self.kept.len() < self.capacity || self.kept.last_key_value().is_some_and(|(last, _)| key < *last)
    }

    /// Offers an item; repetitions of an item are kept once.
    pub(crate) fn offer(&mut self, key: u64, item: T) {
        if self.takes(key) {
            self.kept.insert(key, item);
            if self.kept.len() > self.capacity {
                // Removing the largest key keeps the k smallest, so the result does not depend on the order of the items.
                self.kept.pop_last();
            }
        }
    }

    /// Returns the largest kept key. Every item with a key up to this one was kept.
    pub(super) fn limit(&self) -> u64 {
        self.kept.last_key_value().map_or(0, |(key, _)| *key)
    }

    /// Returns the items, sorted by their keys.
    pub(crate) fn into_items(self) -> Vec<T> {
        self.kept.into_values().collect()
    }
}

/// Returns the key of the item at a place: SplitMix64 (G. Steele et al., OOPSLA 2014), which is one-to-one for a fixed seed.
pub(crate) fn key_of_place(seed: u64, place: u64) -> u64 {
    let mut z =
        // SplitMix64 adds multiples of the golden ratio. The seed is multiplied by an odd factor, so that neighbouring seeds do not
        // give neighbouring streams.
        place.wrapping_add(seed.wrapping_mul(0xd134_2543_de82_ef95)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the key of a text.
pub(super) fn key_of_text(seed: u64, text: &str) -> u64 {
    io::hash_number(&[&seed.to_le_bytes(), text.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_the_whole_and_of_no_order() {
        let sample = |items: &mut dyn Iterator<Item = u64>, seed| {
            let mut reservoir = Reservoir::new(1_000);
            items.for_each(|item| reservoir.offer(key_of_place(seed, item), item));
            let limit = reservoir.limit();
            let items = reservoir.into_items();
            assert!(items.iter().all(|item| key_of_place(seed, *item) <= limit));
            items
        };
        let forwards = sample(&mut (0..100_000), 7);
        assert_eq!(forwards, sample(&mut (0..100_000).rev(), 7));
        assert_ne!(forwards, sample(&mut (0..100_000), 8));
        assert_eq!(forwards.len(), 1_000);
        // Every tenth of the corpus gives about a tenth of the sample: 100 with a standard deviation of 9.5.
        for tenth in 0..10 {
            let count = forwards.iter().filter(|item| *item / 10_000 == tenth).count();
            assert!((50..150).contains(&count), "{tenth}: {count}");
        }
        assert_ne!(key_of_text(0, "C"), key_of_text(1, "C"));
    }
}
