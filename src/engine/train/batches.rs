//! The documents of each update: a function of only the seed and the documents' lengths.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::documents::Document;

/// The offset of the random streams of orders, different from those of initial weights.
const STREAM: u64 = 1 << 32;
/// The offset of the random streams that thin documents.
const THINNED: u64 = 1 << 33;

/// Passes over the documents, each in its own order, cut into batches. A batch may extend into the next pass.
pub struct Batches {
    lengths: Vec<usize>,
    batch_tokens: usize,
    seed: u64,
    shortest_first: bool,
    pass: u64,
    order: Vec<usize>,
}

impl Batches {
    /// Batches of documents with these lengths in tokens. Each batch has at least `batch_tokens` tokens.
    pub fn new(lengths: Vec<usize>, batch_tokens: usize, seed: u64, shortest_first: bool) -> Self {
        Batches { lengths, batch_tokens, seed, shortest_first, pass: 0, order: Vec::new() }
    }

    /// Returns the order of a pass, reversed.
    fn order(&self, pass: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.lengths.len()).collect();
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        // Each pass has its own stream, so that a resumed training gets the order of its pass without computing the earlier ones.
        random.set_stream(STREAM + pass);
        order.shuffle(&mut random);
        if pass == 0 && self.shortest_first {
            // Longest first, because documents are taken from the end. The sort is stable, so documents of equal length stay
            // shuffled.
            order.sort_by_key(|&n| std::cmp::Reverse(self.lengths[n]));
        }
        order
    }
}

impl Iterator for Batches {
    type Item = Vec<usize>;

    /// Returns the documents of the next update; `None` only if there are no documents.
    fn next(&mut self) -> Option<Vec<usize>> {
        let (mut batch, mut tokens) = (Vec::new(), 0);
        while tokens < self.batch_tokens && !self.lengths.is_empty() {
            let Some(document) = self.order.pop() else {
                self.order = self.order(self.pass);
                self.pass += 1;
                continue;
            };
            tokens += self.lengths[document];
            batch.push(document);
        }
        (!batch.is_empty()).then_some(batch)
    }
}

/// Returns the first batches of a training. Their documents keep more and more of their coordinates (`Document::thinned`), from none at
/// the first update to all after `steps` updates. At first, molecules make up most of a batch, so the model learns early to copy them,
/// and over varying distances.
pub fn thinned<'d>(
    documents: &'d [Document],
    batch_tokens: usize,
    steps: u64,
    seed: u64,
) -> impl Iterator<Item = Vec<Document>> + 'd {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(THINNED);
    let mut order = Vec::new();
    (0..steps).map(move |step| {
        // From no coordinates at the first step to all except a share of 1 / `steps` at the last.
        let kept = step as f64 / steps as f64;
        let (mut batch, mut tokens) = (Vec::new(), 0);
        while tokens < batch_tokens {
            if order.is_empty() {
                order = (0..documents.len()).collect();
                order.shuffle(&mut random);
            }
            let Some(document) = order.pop() else { break };
            let document = documents[document].thinned(kept, &mut random);
            tokens += document.tokens.len();
            batch.push(document);
        }
        batch
    })
}

/// Cuts a batch into packs of at most `limit` tokens. A longer document gets a pack of its own.
pub fn packs(batch: &[Document], limit: usize) -> Vec<&[Document]> {
    let mut packs = Vec::new();
    let (mut start, mut tokens) = (0, 0);
    for (at, document) in batch.iter().enumerate() {
        let length = document.tokens.len();
        // No pack is empty, however long a document is.
        if at > start && tokens + length > limit {
            packs.push(&batch[start..at]);
            (start, tokens) = (at, 0);
        }
        tokens += length;
    }
    packs.extend((start < batch.len()).then(|| &batch[start..]));
    packs
}
