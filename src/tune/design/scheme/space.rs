//! What the two design spaces share: the base on top of which costs are counted, the table of cells, and the result.

use std::collections::HashMap;

use super::cuts::{Scheme, SchemeKind};
use super::slots::{BlockSlot, size, strings};

/// The search considers no piece with more strings, and so no scheme with more new tokens.
pub(crate) const MAX_NEW_TOKENS: u64 = 40_000;

/// What the search needs to know about a base vocabulary.
pub trait BaseTokens {
    /// Returns whether a string already is a token.
    fn holds(&self, string: &str) -> bool;
    /// Returns whether a new token with this text could change how texts without blocks are encoded.
    fn may_not_be_added(&self, string: &str) -> bool;
    /// Returns the strings of a scheme that are no tokens, in the scheme's order.
    fn lacks(&self, scheme: &Scheme) -> Vec<String> {
        scheme.strings().into_iter().filter(|string| !self.holds(string)).collect()
    }
}

/// A sorted set of cells.
pub(super) type Cells = Vec<u16>;

/// The cells of pieces, counted while a space is built. A cell is a class of strings that every piece contains either completely or
/// not at all.
pub(super) struct CellTable<'v, V, C> {
    kind: SchemeKind,
    vocabulary: &'v V,
    /// The key of a string's cell.
    cell: C,
    /// For each cell, the number of strings that the base lacks.
    pub(super) costs: Vec<u64>,
    ids: HashMap<String, u16>,
    known: HashMap<Vec<BlockSlot>, Option<Cells>>,
}

impl<'v, V: BaseTokens, C: Fn(&str) -> String> CellTable<'v, V, C> {
    /// Returns a table without cells.
    pub(super) fn new(kind: SchemeKind, vocabulary: &'v V, cell: C) -> Self {
        let (costs, ids, known) = Default::default();
        CellTable { kind, vocabulary, cell, costs, ids, known }
    }

    /// Returns the cells of a piece; `None` if no scheme may have the piece.
    pub(super) fn cells(&mut self, slots: &[BlockSlot]) -> Option<Cells> {
        // Equal rows of slots occur at several places of a block (each decimal is one), and are counted once.
        if let Some(known) = self.known.get(slots) {
            return known.clone();
        }
        let found = self.count(slots);
        self.known.insert(slots.to_vec(), found.clone());
        found
    }

    fn count(&mut self, slots: &[BlockSlot]) -> Option<Cells> {
        // The size follows from the slots, so the strings of a piece that is too large are never generated.
        if !self.kind.allows(slots) || size(slots) > MAX_NEW_TOKENS {
            return None;
        }
        let mut counted: HashMap<String, u64> = HashMap::new();
        for string in strings(slots) {
            let holds = self.vocabulary.holds(&string);
            if !holds && self.vocabulary.may_not_be_added(&string) {
                return None;
            }
            *counted.entry((self.cell)(&string)).or_default() += u64::from(!holds);
        }
        let mut counted: Vec<(String, u64)> = counted.into_iter().collect();
        // Sorted, so that ids and choices are the same in every run: the search draws choices by their indices.
        counted.sort_unstable();
        let cells = counted.into_iter().map(|(key, cost)| {
            *self.ids.entry(key).or_insert_with(|| {
                self.costs.push(cost);
                (self.costs.len() - 1) as u16
            })
        });
        let mut cells: Cells = cells.collect();
        cells.sort_unstable();
        Some(cells)
    }
}

/// The smallest number of new tokens of any scheme in a space, and a scheme that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Optimum {
    /// The scheme.
    pub scheme: Scheme,
    /// The number of new tokens.
    pub new_tokens: u64,
}

/// A base for tests that has these tokens.
#[cfg(test)]
pub(super) struct TestVocabulary(pub &'static [&'static str]);

#[cfg(test)]
impl BaseTokens for TestVocabulary {
    fn holds(&self, string: &str) -> bool {
        self.0.contains(&string)
    }

    fn may_not_be_added(&self, string: &str) -> bool {
        string == "<-"
    }
}
