//! The new tokens of one forward pass, flat, each with its row and position.

use super::cache::Cache;

/// New tokens of one row, at least one.
#[derive(Debug, Clone, Copy)]
pub struct Feed<'a> {
    /// Row of the cache; no row twice.
    pub row: usize,
    /// What to append to it.
    pub tokens: &'a [u32],
}

/// Tokens of several rows, one after the other. Rows of different lengths are either ragged, or padded to one width
/// by repeating a row's last token at its own position, which writes the same keys and values again.
#[derive(Debug)]
pub(super) struct Batch {
    /// Flat, row after row.
    pub tokens: Vec<u32>,
    /// Row of the cache, by token.
    pub rows: Vec<usize>,
    /// Position in its row, by token.
    pub positions: Vec<usize>,
    /// Where the real tokens of each feed lie.
    pub spans: Vec<std::ops::Range<usize>>,
    /// Tokens of a row, if padded.
    pub width: Option<usize>,
}

impl Batch {
    /// Lays out `feeds`, which continue the rows of `cache`.
    pub(super) fn new(feeds: &[Feed<'_>], cache: &Cache, padded: bool) -> Self {
        let width = padded.then(|| feeds.iter().map(|feed| feed.tokens.len()).max().unwrap_or(0));
        let mut batch =
            Batch { tokens: Vec::new(), rows: Vec::new(), positions: Vec::new(), spans: Vec::new(), width };
        for feed in feeds {
            let (start, length) = (cache.lengths()[feed.row], feed.tokens.len());
            let at = batch.tokens.len();
            batch.spans.push(at..at + length);
            for i in 0..width.unwrap_or(length) {
                let i = i.min(length - 1);
                batch.tokens.push(feed.tokens[i]);
                batch.rows.push(feed.row);
                batch.positions.push(start + i);
            }
        }
        batch
    }

    /// The longest row after this pass.
    pub(super) fn length(&self) -> usize {
        self.positions.iter().max().map_or(0, |last| last + 1)
    }

    /// Row of the cache and first position, by feed.
    pub(super) fn starts(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.spans.iter().map(|span| (self.rows[span.start], self.positions[span.start]))
    }
}
