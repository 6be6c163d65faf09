//! Which dialect texts are in, by evidence that no logit processor makes.
//!
//! A position template cuts a block at its end: z loses digits, and what the model had left to say may come at the beginning of
//! the next block (`34,1.2340,…`). A slot too many is filled at the end too. So evidence is
//! - a block of three numbers, of which x and y, closed by the model's own commas, were written whole,
//! - that nothing was cut off before: the first of its text, or behind a block whose z has as many decimals as either
//!   dialect has.
//!
//! Of such blocks, one with a trailing zero at the fourth decimal of x or y is fixed, for the stripped dialect has no such
//! number; one with fewer than four decimals there, and no trailing zero, is stripped, for the fixed dialect has no such number.

use serde::{Deserialize, Serialize};

use drift_core::encoding::decimal_text::NumberPrefix;
use drift_core::encoding::{Encoding, TrailingZeros, scan_prefix};

/// How many times more evidence one dialect needs than the other: a model of no great skill errs in a block now and then.
const MAJORITY: u64 = 4;

/// Blocks that can be of one dialect alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DialectCounts {
    /// Of the fixed dialect.
    pub fixed: u64,
    /// Of the stripped dialect.
    pub stripped: u64,
}

impl DialectCounts {
    /// What the blocks of one text say, in text order, without their brackets. `like` says how many decimals numbers have
    /// and what separates them.
    pub fn from_blocks<'t>(blocks: impl IntoIterator<Item = &'t str>, like: Encoding) -> Self {
        let mut evidence = DialectCounts::default();
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
            // A block that a template cut off pushes what is left into the next one; only behind a whole block is the next one's
            // beginning its own.
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

    /// The sum of both.
    pub fn join(self, other: DialectCounts) -> Self {
        DialectCounts { fixed: self.fixed + other.fixed, stripped: self.stripped + other.stripped }
    }

    /// The dialect, of the decimals and separator of `like`; none where nothing tells, or both are told.
    pub fn dialect(self, like: Encoding) -> Option<Encoding> {
        let DialectCounts { fixed, stripped } = self;
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

    fn dialect(blocks: &[&str]) -> Option<Encoding> {
        DialectCounts::from_blocks(blocks.iter().copied(), Encoding::FIXED).dialect(Encoding::FIXED)
    }

    #[test]
    fn numbers_that_one_dialect_alone_has() {
        assert_eq!(dialect(&["1.2340,0.1111,0."]), Some(Encoding::FIXED));
        assert_eq!(dialect(&["1.2345,0.5,0.1234"]), Some(Encoding::STRIPPED));
        assert_eq!(dialect(&["1.2345,0.1111,0.1234"]), None);
        assert_eq!(dialect(&["1.234,0.1110,0.1234"]), None);
        assert_eq!(dialect(&["1.2340,0.1111", "1.234x,0.5,1"]), None);
        assert_eq!(dialect(&[]), None);
    }

    #[test]
    fn rests_behind_a_cut_are_no_evidence() {
        // A fixed model under a template that clips z: the next block begins with what was cut off.
        assert_eq!(dialect(&["1.2345,-0.1111,0.1", "234,1.2345,0.1", "1.3,1.2345,0."]), None);
        assert_eq!(
            dialect(&["1.2345,-0.1110,0.1", "234,1.2345,0.1", "1.3,1.2345,0."]),
            Some(Encoding::FIXED)
        );
        // Behind a whole block a short number counts again.
        assert_eq!(dialect(&["1.2345,-0.1111,0.1234", "1.3,1.2345,0.5"]), Some(Encoding::STRIPPED));
    }

    #[test]
    fn a_contradiction_is_no_answer() {
        let of = |fixed, stripped| DialectCounts { fixed, stripped }.dialect(Encoding::FIXED);
        assert_eq!(of(8, 2), Some(Encoding::FIXED));
        assert_eq!(of(2, 8), Some(Encoding::STRIPPED));
        assert_eq!(of(7, 2), None);
    }
}
