//! The new tokens of one forward pass in a flat list, each with its row and position.

use super::cache::Cache;

/// New tokens of one row; at least one.
#[derive(Debug, Clone, Copy)]
pub struct Feed<'a> {
    /// The row of the cache. No two feeds of a pass have the same row.
    pub row: usize,
    /// The tokens to append to the row.
    pub tokens: &'a [u32],
}

/// New tokens of several rows, concatenated without padding.
#[derive(Debug)]
pub(super) struct Batch {
    /// The token ids, row after row.
    pub tokens: Vec<u32>,
    /// The row of the cache, for each token.
    pub rows: Vec<usize>,
    /// The position in its row, for each token.
    pub positions: Vec<usize>,
    /// The range of tokens of each feed.
    pub spans: Vec<std::ops::Range<usize>>,
}

impl Batch {
    /// Lays out `feeds`, which continue the rows of `cache`.
    pub(super) fn new(feeds: &[Feed<'_>], cache: &Cache) -> Self {
        let mut batch =
            Batch { tokens: Vec::new(), rows: Vec::new(), positions: Vec::new(), spans: Vec::new() };
        for feed in feeds {
            let (start, length) = (cache.lengths()[feed.row], feed.tokens.len());
            let at = batch.tokens.len();
            batch.spans.push(at..at + length);
            batch.tokens.extend(feed.tokens);
            batch.rows.extend(std::iter::repeat_n(feed.row, length));
            batch.positions.extend(start..start + length);
        }
        batch
    }

    /// Returns the length of the longest row after this pass, in tokens.
    pub(super) fn length(&self) -> usize {
        self.positions.iter().max().map_or(0, |last| last + 1)
    }
}
