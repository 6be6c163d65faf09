//! Whether a tokenizer writes tokens behind others, by pieces and pairs: tokens of a whole piece are canonical if the model makes them of
//! it, and tokens within a piece if its merges make each two neighbours of their own text. [`super::product`] has the sources.
//!
//! A model may look whole pieces up before it merges. It never looks two neighbours within a longer piece up: `,6` may be a token that
//! stands only where it is a piece.

use std::collections::HashMap;
use std::ops::Deref;

use super::load::Tokenizer;
use super::spellings::TokenSpellings;

/// A tokenizer's model, with what it was found to make of texts.
pub(super) struct CanonicalModel<T, S> {
    pub tokenizer: T,
    pub spellings: S,
    /// Whether it makes two tokens of their text, or one, with [`u32::MAX`] in place of the second, and whether as a whole piece.
    pairs: HashMap<([u32; 2], bool), bool>,
    /// Whether it makes more than two of theirs, as a whole piece.
    made: HashMap<Box<[u32]>, bool>,
}

/// The tokens of a part before another token.
pub(super) struct Before<'t> {
    pub ids: &'t [u32],
    /// Where they begin in the text, in bytes.
    pub begins: usize,
}

/// Where the last piece of a text is.
#[derive(PartialEq, Eq)]
pub(super) struct PieceBorder {
    /// Whether the text goes on in the piece.
    pub is_open: bool,
    /// How many tokens are in the pieces before it.
    first: usize,
    /// Where the piece before it begins, in bytes of the part.
    pub from: usize,
}

impl<T: Deref<Target = Tokenizer>, S: Deref<Target = TokenSpellings>> CanonicalModel<T, S> {
    pub(super) fn new(tokenizer: T, spellings: S) -> Self {
        CanonicalModel { tokenizer, spellings, pairs: HashMap::new(), made: HashMap::new() }
    }

    /// Returns where the last piece is if a token of so many bytes stands behind others in a text whose pieces have these ends; `None` if
    /// the tokenizer does not write the others there, or cuts the token.
    pub(super) fn border(&mut self, before: &Before, length: usize, ends: &[usize]) -> Option<PieceBorder> {
        let Before { ids, begins } = *before;
        // A piece that began before the part is independent of it, because no token crosses that border.
        let mut ends = ends.iter().copied().skip_while(|end| *end <= begins).peekable();
        let (mut at, mut first, mut begun) = (begins, 0, [begins; 2]);
        for (index, id) in ids.iter().enumerate() {
            at += self.spellings.bytes(*id).len();
            match ends.peek() {
                Some(end) if *end < at => return None,
                Some(end) if *end == at => {
                    if !self.makes(&ids[first..=index], true) {
                        return None;
                    }
                    ends.next();
                    first = index + 1;
                    begun = [begun[1], at];
                }
                _ => {}
            }
        }
        let is_open = match ends.peek() {
            Some(end) if *end < at + length => return None,
            end => end != Some(&(at + length)),
        };
        let are_made = !is_open || ids[first..].windows(2).all(|pair| self.makes(pair, false));
        are_made.then_some(PieceBorder { is_open, first, from: begun[0] - begins })
    }

    /// Returns whether the tokenizer writes a token behind others, with some of which it may share the last piece.
    pub(super) fn writes(&mut self, before: &[u32], id: u32, border: &PieceBorder) -> bool {
        let is_whole = !border.is_open;
        match &before[border.first..] {
            [] => self.makes(&[id], is_whole),
            [last] => self.makes(&[*last, id], is_whole),
            [.., last] if border.is_open => self.makes(&[*last, id], false),
            several => self.makes(&[several, &[id]].concat(), true),
        }
    }

    /// Returns whether the model makes these tokens of their text, as a whole piece or within a longer one.
    fn makes(&mut self, ids: &[u32], is_whole: bool) -> bool {
        let pair = match *ids {
            [one] => Some([one, u32::MAX]),
            [one, other] => Some([one, other]),
            _ => None,
        };
        let known = pair.map_or_else(|| self.made.get(ids), |pair| self.pairs.get(&(pair, is_whole)));
        if let Some(known) = known {
            return *known;
        }
        let piece: String = ids.iter().map(|id| self.spellings.piece(*id)).collect();
        let all = if is_whole { self.tokenizer.model_ids(&piece) } else { self.tokenizer.merged_ids(&piece) };
        let made = all.is_some_and(|made| made == ids);
        match pair {
            Some(pair) => self.pairs.insert((pair, is_whole), made),
            None => self.made.insert(ids.into(), made),
        };
        made
    }
}
