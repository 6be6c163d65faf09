//! The free text before a skeleton's marker: any token, until the marker stands in the text.
//!
//! A token that ends the marker is legal if the described text can follow it in canonical tokens: where the tokenizer has a border
//! behind the marker, any token that ends there; where a token reaches over the marker's end (`>P` of `<CIF>P1`), that token alone.

use std::sync::{Arc, OnceLock};

use super::expand::Spot;
use crate::tokenizer::TokenSpellings;

/// A token that completes the marker.
#[derive(Debug, Clone, Copy)]
struct MarkerEnd {
    id: u32,
    /// How many of its bytes belong to the marker or stand before it.
    used: usize,
}

/// The tokens that complete a marker, for one tokenizer.
pub(super) struct MarkerTokens {
    marker: Box<[u8]>,
    /// By how many bytes of the marker are written, how many are if another byte than the next one follows.
    fallback: Vec<usize>,
    spellings: Arc<TokenSpellings>,
    /// By how many bytes of the marker are written; sorted by id.
    completing: Vec<OnceLock<Vec<MarkerEnd>>>,
}

/// The tokens of the marker and the fixed text behind it, up to a border.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    pub ids: Arc<[u32]>,
    /// The offset of each token from the beginning of the marker, and the one behind the last.
    pub offsets: Vec<usize>,
    /// The text behind the marker.
    pub text: String,
    /// The place behind the text.
    pub to: Spot,
}

impl MarkerTokens {
    pub(super) fn new(marker: &str, spellings: &Arc<TokenSpellings>) -> Self {
        let bytes = marker.as_bytes();
        let mut fallback = vec![0; bytes.len() + 1];
        // The longest proper ending of each beginning that is a beginning too (Knuth, Morris and Pratt).
        for at in 1..bytes.len() {
            let mut length = fallback[at];
            while length > 0 && bytes[length] != bytes[at] {
                length = fallback[length];
            }
            fallback[at + 1] = if bytes[length] == bytes[at] { length + 1 } else { 0 };
        }
        let completing = bytes.iter().map(|_| OnceLock::new()).collect();
        MarkerTokens { marker: bytes.into(), fallback, spellings: spellings.clone(), completing }
    }

    /// Returns how much of the marker is written behind a token, if it does not complete it; else how many of its bytes did.
    pub(super) fn after(&self, written: usize, id: u32) -> Result<usize, usize> {
        let mut length = written;
        for (at, byte) in self.spellings.bytes(id).iter().enumerate() {
            while length > 0 && self.marker[length] != *byte {
                length = self.fallback[length];
            }
            length += usize::from(self.marker[length] == *byte);
            if length == self.marker.len() {
                return Err(at + 1);
            }
        }
        Ok(length)
    }

    fn completing(&self, written: usize) -> &[MarkerEnd] {
        self.completing[written].get_or_init(|| {
            let completes = |id: u32| Some(MarkerEnd { id, used: self.after(written, id).err()? });
            self.spellings.all().filter_map(|token| completes(token.0)).collect()
        })
    }

    /// Returns the index of the opening's token behind one that completed the marker with so many of its bytes; `None` if it is not
    /// legal.
    pub(super) fn entry(&self, opening: &Opening, id: u32, used: usize) -> Option<usize> {
        let rest = self.spellings.bytes(id).len() - used;
        if rest == 0 {
            return opening.offsets.iter().position(|offset| *offset == self.marker.len());
        }
        let start = self.marker.len().checked_sub(used)?;
        let index = opening.offsets[..opening.ids.len()].iter().position(|offset| *offset == start)?;
        (opening.ids[index] == id).then_some(index + 1)
    }

    /// Returns the tokens that are forbidden where so many bytes of the marker are written, beside the end of the text; sorted.
    pub(super) fn forbidden(&self, written: usize, openings: &[Opening], eos: u32) -> Arc<[u32]> {
        let mut forbidden = vec![eos];
        for MarkerEnd { id, used } in self.completing(written) {
            if openings.iter().all(|opening| self.entry(opening, *id, *used).is_none()) {
                forbidden.push(*id);
            }
        }
        forbidden.sort_unstable();
        forbidden.dedup();
        forbidden.into()
    }
}
