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

/// Tokens of several rows, one after the other, without padding.
#[derive(Debug)]
pub(super) struct Batch {
    /// Flat, row after row.
    pub tokens: Vec<u32>,
    /// Row of the cache, by token.
    pub rows: Vec<usize>,
    /// Position in its row, by token.
    pub positions: Vec<usize>,
    /// Where the tokens of each feed lie.
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

    /// The longest row after this pass.
    pub(super) fn length(&self) -> usize {
        self.positions.iter().max().map_or(0, |last| last + 1)
    }
}
