//! The tokens of texts that differ only in digits, without running the pre-tokenizer on each of them.
//!
//! The product of a slot's automaton with a tokenizer asks for the tokens of hundreds of thousands of short texts if the tokenizer
//! has thousands of tokens of digits. `encode` spends nearly all its time on the expressions of the pre-tokenizer. But
//! pre-tokenizers count digits and do not read them, so texts of one *shape* (the text with 0 for every digit) are cut at the same
//! places. A shape is cut once, and the model tokenises the pieces, as `encode` does.
//!
//! That a pre-tokenizer does not read digits is tested on every shape, with three other texts of the shape and with `encode`. If it
//! does, the tokenizer has no shapes, and each text is encoded.

use std::collections::HashMap;

use super::load::Tokenizer;
use crate::error::Result;

/// Where texts of each shape are cut.
pub(super) struct EncoderShapes<'a> {
    tokenizer: &'a Tokenizer,
    /// The text before all texts, and its ids.
    before: (String, Vec<u32>),
    /// By shape, the lengths of the pieces in bytes; `None` for a tokenizer whose pre-tokenizer reads digits.
    lengths: Option<HashMap<String, Vec<usize>>>,
}

impl<'a> EncoderShapes<'a> {
    /// Returns an empty set of shapes of texts behind `before`. `cut`: whether to look for shapes at all; added tokens are matched by their
    /// digits.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text before.
    pub(super) fn new(tokenizer: &'a Tokenizer, before: &str, cut: bool) -> Result<Self> {
        let before = (before.to_owned(), tokenizer.ids(before)?);
        Ok(EncoderShapes { tokenizer, before, lengths: cut.then(HashMap::new) })
    }

    /// Returns whether the encoder turns `text` behind the text before into the ids `way` and then the token `id`, which has the last
    /// `length` bytes of `text`.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text.
    pub(super) fn ends_in(&mut self, text: &str, way: &[u32], id: u32, length: usize) -> Result<bool> {
        let tokenizer = self.tokenizer;
        let whole = format!("{}{text}", self.before.0);
        let ids = match self.lengths(&whole)? {
            // The token would reach over a cut.
            Some(lengths) if lengths.last().is_none_or(|last| *last < length) => return Ok(false),
            Some(lengths) => pieces_ids(tokenizer, &whole, lengths),
            None => None,
        };
        let ids = match ids {
            Some(ids) => ids,
            None => tokenizer.ids(&whole)?,
        };
        let behind = ids.strip_prefix(&self.before.1[..]).and_then(|behind| behind.strip_prefix(way));
        Ok(behind == Some(&[id]))
    }

    /// Returns the lengths of a text's pieces; `None` if the tokenizer has no shapes.
    fn lengths(&mut self, whole: &str) -> Result<Option<&Vec<usize>>> {
        let Some(known) = &self.lengths else { return Ok(None) };
        let shape = turned(whole, |_| b'0');
        if !known.contains_key(&shape) {
            let found = self.learned(whole)?;
            match (found, &mut self.lengths) {
                (Some(lengths), Some(known)) => known.insert(shape.clone(), lengths),
                _ => {
                    self.lengths = None;
                    return Ok(None);
                }
            };
        }
        Ok(self.lengths.as_ref().and_then(|known| known.get(&shape)))
    }

    /// Returns the lengths of the pieces of every text with the shape of `whole`; `None` if texts of the shape are cut differently, or
    /// the pieces' tokens are not those of the encoder.
    fn learned(&self, whole: &str) -> Result<Option<Vec<usize>>> {
        let lengths = self.cut(whole)?;
        for turn in [1, 4, 7] {
            let other = turned(whole, |digit| b'0' + (digit - b'0' + turn) % 10);
            if self.cut(&other)? != lengths {
                return Ok(None);
            }
        }
        // Pieces must be parts of the text itself: a pre-tokenizer may drop characters, or add some.
        if lengths.iter().sum::<usize>() != whole.len() {
            return Ok(None);
        }
        let ids = pieces_ids(self.tokenizer, whole, &lengths);
        Ok((ids == Some(self.tokenizer.ids(whole)?)).then_some(lengths))
    }

    fn cut(&self, text: &str) -> Result<Vec<usize>> {
        Ok(self.tokenizer.pre_tokens(text)?.iter().map(String::len).collect())
    }
}

/// Returns the ids of the pieces of a text; `None` if the model refuses one.
fn pieces_ids(tokenizer: &Tokenizer, whole: &str, lengths: &[usize]) -> Option<Vec<u32>> {
    let mut ids = Vec::new();
    let mut rest = whole;
    for length in lengths {
        let (piece, behind) = rest.split_at_checked(*length)?;
        ids.extend(tokenizer.model_ids(piece)?);
        rest = behind;
    }
    Some(ids)
}

/// Returns a text with each of its digits replaced.
fn turned(text: &str, turn: impl Fn(u8) -> u8) -> String {
    let one = |c: char| if c.is_ascii_digit() { char::from(turn(c as u8)) } else { c };
    text.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens of the texts of a number are those of the encoder, by shape or not.
    #[test]
    fn tokens_by_shape_are_those_of_the_encoder() {
        for name in ["qwen-like", "llama-like", "qwen-like-fused", "llama-like-separate"] {
            let Ok(tokenizer) = Tokenizer::load(std::path::Path::new(name)) else { continue };
            for cut in [true, false] {
                let mut shapes = EncoderShapes::new(&tokenizer, "[C]<", cut).unwrap();
                for number in (0..9_999).step_by(37) {
                    let text = format!("{}.{number:04},-1", number % 100);
                    let ids = tokenizer.ids(&format!("[C]<{text}")).unwrap();
                    let way = &ids[shapes.before.1.len()..ids.len() - 1];
                    assert!(shapes.ends_in(&text, way, ids[ids.len() - 1], 1).unwrap(), "{name}: {text}");
                    assert!(!shapes.ends_in(&text, way, ids[ids.len() - 1] + 1, 1).unwrap());
                    assert!(!shapes.ends_in(&text, &way[1..], ids[ids.len() - 1], 1).unwrap());
                }
                assert_eq!(
                    shapes.lengths.as_ref().map(|known| known.len() > 1),
                    cut.then_some(true),
                    "{name}"
                );
            }
        }
    }

    /// A pre-tokenizer that cuts only before a 7.
    #[test]
    fn a_tokenizer_that_reads_digits_has_no_shapes() {
        let json = br#"{"version": "1.0", "added_tokens": [], "pre_tokenizer":
            {"type": "Split", "pattern": {"Regex": "7"}, "behavior": "Isolated", "invert": false},
            "model": {"type": "BPE", "vocab": {"[": 0, "C": 1, "]": 2, "<": 3, "0": 4, "1": 5, "2": 6, "3": 7, "4": 8, "5": 9,
            "6": 10, "7": 11, "8": 12, "9": 13, ".": 14, ",": 15, "-": 16, ">": 17, "=": 18, "O": 19, "77": 20},
            "merges": ["7 7"]}}"#;
        let source = crate::io::hash_bytes("t", json);
        let tokenizer = Tokenizer::from_bytes("t", source, json).unwrap();
        let mut shapes = EncoderShapes::new(&tokenizer, "[C]<", true).unwrap();
        assert!(shapes.ends_in("77", &[11], 11, 1).unwrap());
        assert!(shapes.lengths.is_none());
        assert!(!shapes.ends_in("77", &[], 20, 2).unwrap());
    }
}
