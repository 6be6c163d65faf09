//! The scores of a Unigram model: whether the tokens of a text are decided.
//!
//! Unigram takes the segmentation with the highest sum of scores. Sums are rounded, so the text before may decide between two
//! segmentations with equal scores. A text is decided if the best one is ahead by a margin.

use std::collections::HashMap;

use tokenizers::models::unigram::Unigram;

use super::load::Tokenizer;
use super::normalizer::SPACE;
use super::parts::TextPart;

/// The smallest lead of the best segmentation. A text's sum of scores is below 10⁸ in magnitude, where doubles are 10⁻⁸ apart, and
/// two segmentations of a part differ in fewer than a hundred additions.
const MARGIN: f64 = 1e-5;

/// The pieces of a Unigram model with their scores.
#[derive(Debug)]
pub(crate) struct Scores {
    pieces: HashMap<String, f64>,
    /// The longest piece, in bytes.
    longest: usize,
}

impl Scores {
    pub(super) fn of(model: &Unigram) -> Self {
        let pieces: HashMap<String, f64> = model.iter().cloned().collect();
        let longest = pieces.keys().map(String::len).max().unwrap_or(0);
        Scores { pieces, longest }
    }

    /// Returns the lead of the best segmentation of a text over the second best: 0 if a character has no piece, infinite if there is only
    /// one segmentation.
    ///
    /// Dynamic programming: the two best sums up to each position follow from those up to earlier positions.
    pub(super) fn margin(&self, text: &str) -> f64 {
        const NONE: f64 = f64::NEG_INFINITY;
        let mut best = vec![[NONE; 2]; text.len() + 1];
        best[0][0] = 0.0;
        for (start, c) in text.char_indices() {
            if !self.pieces.contains_key(&text[start..start + c.len_utf8()]) {
                return 0.0;
            }
            let ends =
                (start + 1..=text.len().min(start + self.longest)).filter(|end| text.is_char_boundary(*end));
            for end in ends {
                let Some(score) = self.pieces.get(&text[start..end]) else { continue };
                for sum in best[start].map(|sum| sum + score) {
                    let [first, second] = best[end];
                    if sum > first {
                        best[end] = [sum, first];
                    } else if sum > second {
                        best[end][1] = sum;
                    }
                }
            }
        }
        let [first, second] = best[text.len()];
        first - second
    }

    /// Returns whether the tokens of a part depend only on it. `begins` means that the part begins a text, where the tokenizer may
    /// add a space before it. Added tokens are matched before the model runs, so they are always decided.
    pub(crate) fn decide(&self, tokenizer: &Tokenizer, part: &str, begins: bool) -> bool {
        let Ok(sections) = tokenizer.sections(part) else { return false };
        sections.iter().enumerate().all(|(at, section)| {
            let TextPart::Piece(piece) = section else { return true };
            // The normalizer adds a space before a part that is encoded alone, but not inside a text.
            let bare = piece.strip_prefix(SPACE).filter(|_| at == 0 && !begins);
            self.margin(bare.unwrap_or(piece)) >= MARGIN
        })
    }

    /// Returns whether the tokens of a part of a pre-token are decided; white space as in a text.
    pub(crate) fn decide_piece(&self, text: &str) -> bool {
        self.margin(&text.replace(' ', SPACE)) >= MARGIN
    }
}
