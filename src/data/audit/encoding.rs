//! Determines whether texts are fixed or stripped, from evidence that no logit processor can create.
//!
//! A position template cuts a block at its end: z loses digits, and the rest that the model wanted to write may appear at the
//! beginning of the next block (`34,1.2340,…`). Surplus slots are filled at the end too. So a block is evidence if
//! - it has three numbers, of which x and y, closed by the model's own commas, are complete, and
//! - nothing was cut off before it: it is the first block of its text, or the z of the previous block has as many decimals as
//!   either encoding allows.
//!
//! Such a block is fixed if x or y has a trailing zero at the fourth decimal, because the stripped encoding has no such number. It
//! is stripped if x or y has fewer than four decimals and no trailing zero, because the fixed encoding has no such number.

use serde::{Deserialize, Serialize};

use drift_core::Encoding;
use drift_core::encoding::decimal_text::NumberPrefix;
use drift_core::encoding::{TrailingZeros, scan_prefix};

/// The factor by which the evidence for one encoding must exceed the other: a weak model makes occasional mistakes.
const MAJORITY: u64 = 4;

/// The number of blocks that are possible in only one encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EncodingCounts {
    /// Blocks of the fixed encoding.
    pub fixed: u64,
    /// Blocks of the stripped encoding.
    pub stripped: u64,
}

impl EncodingCounts {
    /// Counts the evidence in the blocks of one text, given without brackets in text order. `like` defines the number of decimals
    /// and the separator.
    pub fn from_blocks<'t>(blocks: impl IntoIterator<Item = &'t str>, like: Encoding) -> Self {
        let mut evidence = EncodingCounts::default();
        let mut uncut = true;
        for block in blocks {
            let parts = block.split(like.separator());
            let parts: Vec<NumberPrefix> = parts.map(|part| scan_prefix(part.as_bytes())).collect();
            let [x, y, z] = &parts[..] else {
                uncut = false;
                continue;
            };
            if uncut && [x, y, z].iter().all(|part| part.is_number()) {
                evidence.add([x, y], like.decimals());
            }
            // A block that a template cut off pushes its rest into the next block. Only after a complete block does the next one
            // begin with its own text.
            uncut = z.is_number() && z.decimals == like.decimals();
        }
        evidence
    }

    fn add(&mut self, [x, y]: [&NumberPrefix; 2], decimals: usize) {
        let padded = |part: &NumberPrefix| part.decimals == decimals && part.trailing_zeros > 0;
        let short = |part: &NumberPrefix| part.decimals < decimals && part.trailing_zeros == 0;
        let (fixed, stripped) = (padded(x) || padded(y), short(x) || short(y));
        self.fixed += u64::from(fixed && !stripped);
        self.stripped += u64::from(stripped && !fixed);
    }

    /// Returns the sum of both counts.
    pub fn join(self, other: EncodingCounts) -> Self {
        EncodingCounts { fixed: self.fixed + other.fixed, stripped: self.stripped + other.stripped }
    }

    /// Returns the encoding, with the decimals and separator of `like`; `None` if there is no evidence, or the evidence is mixed.
    pub fn encoding(self, like: Encoding) -> Option<Encoding> {
        let EncodingCounts { fixed, stripped } = self;
        if fixed > 0 && fixed >= MAJORITY * stripped {
            Some(like.with_zeros(TrailingZeros::Kept))
        } else if stripped > 0 && stripped >= MAJORITY * fixed {
            Some(like.with_zeros(TrailingZeros::Removed))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding(blocks: &[&str]) -> Option<Encoding> {
        EncodingCounts::from_blocks(blocks.iter().copied(), Encoding::FIXED).encoding(Encoding::FIXED)
    }

    #[test]
    fn numbers_that_one_encoding_alone_has() {
        assert_eq!(encoding(&["1.2340,0.1111,0."]), Some(Encoding::FIXED));
        assert_eq!(encoding(&["1.2345,0.5,0.1234"]), Some(Encoding::STRIPPED));
        assert_eq!(encoding(&["1.2345,0.1111,0.1234"]), None);
        assert_eq!(encoding(&["1.234,0.1110,0.1234"]), None);
        assert_eq!(encoding(&["1.2340,0.1111", "1.234x,0.5,1"]), None);
        assert_eq!(encoding(&[]), None);
    }

    #[test]
    fn rests_behind_a_cut_are_no_evidence() {
        // A fixed model under a template that clips z: the next block begins with what was cut off.
        assert_eq!(encoding(&["1.2345,-0.1111,0.1", "234,1.2345,0.1", "1.3,1.2345,0."]), None);
        assert_eq!(
            encoding(&["1.2345,-0.1110,0.1", "234,1.2345,0.1", "1.3,1.2345,0."]),
            Some(Encoding::FIXED)
        );
        // Behind a whole block a short number counts again.
        assert_eq!(encoding(&["1.2345,-0.1111,0.1234", "1.3,1.2345,0.5"]), Some(Encoding::STRIPPED));
    }

    #[test]
    fn a_contradiction_is_no_answer() {
        let of = |fixed, stripped| EncodingCounts { fixed, stripped }.encoding(Encoding::FIXED);
        assert_eq!(of(8, 2), Some(Encoding::FIXED));
        assert_eq!(of(2, 8), Some(Encoding::STRIPPED));
        assert_eq!(of(7, 2), None);
    }
}
