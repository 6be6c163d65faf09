//! The counting bound: a lower bound on the number of new tokens of any scheme.
//!
//! Suppose that each of the M blocks of a range takes exactly N tokens, where the first begins at `<` and the last ends at `>`.
//! Decoding gives the block back, so different blocks have different token sequences. A token that begins with `<` can only be the
//! first, and one that ends with `>` only the last. With a tokens of the first kind, b of the second, and c others:
//!
//! ```text
//! M ≤ a · b · c^(N - 2)
//! ```
//!
//! Each of a, b and c is at most the number of the base's own tokens that can occur in a block plus the number of new ones. In the
//! separate kind, the first token is `<` and the last `>`, so a = b = 1. The bound does not depend on slots: it holds for tokens
//! with any text, even if blocks are cut inside an integer part. If blocks have no opening character, or it also occurs elsewhere
//! in a block, the first token is one of the others: M ≤ b · c^(N - 1).

use std::ops::RangeInclusive;

use super::cuts::SchemeKind;
use super::grammar::Grammar;
use super::slots::BlockSlot;
use drift_core::encoding::{Dfa, DfaState, IntegersBelow};

/// The numbers of tokens that can occur in a block, by position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsableTokens {
    /// The number of tokens that begin with `<`.
    pub first: u64,
    /// The number of tokens that end with `>`.
    pub last: u64,
    /// The number of all other tokens.
    pub inner: u64,
}

impl UsableTokens {
    /// Counts the tokens of a vocabulary that can be part of some block.
    pub(crate) fn from_vocabulary<'v>(grammar: Grammar, vocabulary: impl Iterator<Item = &'v str>) -> Self {
        let (parts, [open, close]) = (BlockParts::of(grammar), ends(grammar));
        let mut usable = UsableTokens::default();
        for token in vocabulary.filter(|token| parts.hold(token)) {
            if open.is_some_and(|open| token.starts_with(open)) {
                usable.first += 1;
            } else if close.is_some_and(|close| token.ends_with(close)) {
                usable.last += 1;
            } else {
                usable.inner += 1;
            }
        }
        usable
    }
}

/// Returns the strings that distinguish the first and the last token of a block from all others: the opening and the closing characters,
/// if they occur nowhere else in a block.
fn ends(grammar: Grammar) -> [Option<&'static str>; 2] {
    let encoding = grammar.encoding();
    let (open, between, close) = (encoding.open(), encoding.separator(), encoding.close());
    // The text around numbers contains no digit, sign or point.
    [(open, close), (close, open)].map(|(text, other)| {
        Some(text).filter(|text| !text.is_empty() && !between.contains(text) && !other.contains(text))
    })
}

/// The largest number of new tokens that are counted one by one; the bound is capped at this.
const MOST_COUNTED: u64 = 10_000_000;

/// Returns the smallest number of new tokens that any scheme with `tokens` tokens per block needs.
pub(crate) fn counting_bound(kind: SchemeKind, grammar: Grammar, tokens: usize, base: UsableTokens) -> u64 {
    let blocks = grammar.blocks();
    let ends = ends(grammar).map(|end| end.is_some());
    if tokens == 1 {
        // Each block is a separate token.
        let most = base.first + if ends[0] { 0 } else { base.last + base.inner };
        return u64::try_from(blocks).unwrap_or(u64::MAX).saturating_sub(most);
    }
    // A separate scheme has one token that opens and one that closes a block, whatever tokens the base has.
    let fixed = ends.map(|end| !end || kind == SchemeKind::Separate);
    let first = if fixed[0] { 1 } else { base.first };
    let last = if fixed[1] { 1 } else { base.last };
    let mut counts = [first, last, base.inner];
    let power = tokens.saturating_sub(ends.iter().filter(|end| **end).count()).max(1) as u32;
    // The logarithm of the product is a sum of concave functions, so adding each token where it gains most is optimal. The
    // tolerance of 1e-9 is far larger than the effect that rounding can have through a wrong choice.
    let enough = blocks - blocks / 1_000_000_000;
    let mut new = 0;
    while sequences(counts, power) < enough && new < MOST_COUNTED {
        let gains = [
            if fixed[0] { f64::NEG_INFINITY } else { gain(counts[0]) },
            if fixed[1] { f64::NEG_INFINITY } else { gain(counts[1]) },
            f64::from(power) * gain(counts[2]),
        ];
        let best = (0..3).max_by(|&a, &b| gains[a].total_cmp(&gains[b]));
        counts[best.unwrap_or(2)] += 1;
        new += 1;
    }
    new
}

/// Returns the number of sequences of one of the first tokens, one of the last, and `power` of the inner ones.
fn sequences([first, last, inner]: [u64; 3], power: u32) -> u128 {
    // Overflow means that there are enough: no number of blocks is larger than the maximum.
    let inner = u128::from(inner).checked_pow(power).unwrap_or(u128::MAX);
    u128::from(first).saturating_mul(u128::from(last)).saturating_mul(inner)
}

/// Returns the logarithm of the factor by which one more token increases a count. Without any token it is infinite, which is correct: the
/// product is 0 until there is one.
fn gain(count: u64) -> f64 {
    ((count + 1) as f64 / count as f64).ln()
}

/// What is proved about the tokens of every block of a range, and the bound that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockGuarantee {
    /// The smallest number of tokens of any block.
    pub fewest: usize,
    /// The largest number of tokens of any block.
    pub most: usize,
    /// A lower bound: no tokenizer of this kind can do with fewer new tokens if no block takes more than `most` tokens.
    pub lower_bound: u64,
}

impl BlockGuarantee {
    /// From the numbers of tokens of blocks, on top of a base.
    pub fn new(
        kind: SchemeKind,
        grammar: Grammar,
        tokens: RangeInclusive<usize>,
        base: UsableTokens,
    ) -> Self {
        let (fewest, most) = tokens.into_inner();
        // For the bound only, shorter blocks are padded with one additional kind of token.
        let base = UsableTokens { inner: base.inner + u64::from(fewest < most), ..base };
        BlockGuarantee { fewest, most, lower_bound: counting_bound(kind, grammar, most, base) }
    }

    /// Returns the largest difference between the number of tokens of any block and `tokens`.
    pub fn drift(&self, tokens: u64) -> u64 {
        tokens.abs_diff(self.fewest as u64).max(tokens.abs_diff(self.most as u64))
    }
}

/// Recognizes strings that are part of some block. For decimals, integer parts have one or two digits; for the stripped encoding,
/// some strings that end in zero are accepted too.
pub(in crate::design) enum BlockParts {
    /// For each place of a decimal block, the byte class that it takes, and by how many places one may move on instead.
    Decimals(Vec<(u8, usize)>),
    /// An automaton, for blocks whose numbers have their own bounds.
    Others(Dfa),
}

impl BlockParts {
    /// For the blocks of a grammar.
    pub(in crate::design) fn of(grammar: Grammar) -> Self {
        if !grammar.encoding().is_decimal() {
            return BlockParts::Others(grammar.encoding().dfa(IntegersBelow::GENERATED));
        }
        let (fewest, decimals, row) = (grammar.fewest_decimals(), grammar.decimals(), grammar.row());
        let mut slots: Vec<(u8, usize)> = Vec::new();
        for (slot, known) in row.iter().enumerate() {
            // The number of the number's slots from here on. A shorter number continues after them.
            let to_end = decimals + 3 - row.place(slot).1.min(decimals + 3);
            match known {
                BlockSlot::Sign => slots.push((b'-', 1)),
                // One or two digits: the first place may be skipped.
                BlockSlot::Number { .. } => slots.extend([(b'd', 1), (b'd', 0)]),
                BlockSlot::Point => slots.push((b'.', if fewest == 0 { to_end } else { 0 })),
                BlockSlot::Digit | BlockSlot::Last => {
                    let decimal = decimals + 1 - to_end;
                    slots.push((b'd', if decimal > fewest.max(1) { to_end } else { 0 }));
                }
                BlockSlot::Open(text) | BlockSlot::Comma(text) | BlockSlot::Close(text) => {
                    slots.extend(text.bytes().map(|byte| (byte, 0)));
                }
            }
        }
        BlockParts::Decimals(slots)
    }

    /// Returns whether a string is part of some block.
    pub(in crate::design) fn hold(&self, string: &str) -> bool {
        match self {
            BlockParts::Decimals(slots) => in_slots(slots, string),
            BlockParts::Others(dfa) => {
                // A token may begin anywhere in a block, so any state may be the first.
                let mut states = 0..dfa.len() as DfaState;
                !string.is_empty() && states.any(|state| dfa.run(state, string.as_bytes()).is_some())
            }
        }
    }
}

fn in_slots(slots: &[(u8, usize)], string: &str) -> bool {
    // Bit i: the next character may be at place i.
    // A block has fewer than 64 places, even with six decimals, so one word is enough.
    let mut places = (1u64 << slots.len()) - 1;
    for byte in string.bytes() {
        let class = if byte.is_ascii_digit() { b'd' } else { byte };
        let taken =
            slots.iter().enumerate().filter(|(at, (slot, _))| places >> at & 1 == 1 && *slot == class);
        places = taken.fold(0, |next, (at, _)| next | 1 << (at + 1));
        for (at, (_, on)) in slots.iter().enumerate().filter(|(_, (_, on))| *on > 0) {
            if places >> at & 1 == 1 {
                places |= 1 << (at + on);
            }
        }
        if places == 0 {
            return false;
        }
    }
    !string.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::{fixed_grammar, stripped_grammar};

    #[test]
    fn parts_of_blocks_are_known() {
        let fixed = fixed_grammar(15, 4);
        for part in ["<", "<-", "<-12.", ",-", "1234,", "34>", ".0", "1234", "4,-12.3456,7"] {
            assert!(BlockParts::of(fixed).hold(part), "{part}");
        }
        for other in ["", "--", ">1", "]<", ".,", "12345", "a", ",,", "1<", "..", "->", "1,2,", ".12,"] {
            assert!(!BlockParts::of(fixed).hold(other), "{other}");
        }
        let two = stripped_grammar(15, 4, 2);
        assert!(BlockParts::of(two).hold(".12,") && BlockParts::of(two).hold("<1.123,4.56,-7.1234>"));
        assert!(!BlockParts::of(two).hold(".1,") && !BlockParts::of(two).hold("<1,"));
        let all = stripped_grammar(15, 4, 0);
        assert!(BlockParts::of(all).hold("<1,2.5,-3>") && BlockParts::of(all).hold(".1,"));
        assert!(!BlockParts::of(all).hold(".,") && !BlockParts::of(all).hold(".12345"));
    }

    #[test]
    fn bounds_are_the_least_numbers_that_pass_the_inequality() {
        let range = fixed_grammar(15, 4);
        // 9 tokens from nothing: the least of all a + b + c, by trying them.
        let base = UsableTokens { first: 1, last: 1, inner: 1 };
        let passes = |a: u128, b: u128, c: u128| a * b * c.pow(7) >= 27_000_000_000_000_000;
        let least = (1..60u128).flat_map(|a| (1..60u128).map(move |b| (a, b)));
        let least =
            least.filter_map(|(a, b)| (1..400).find(|c| passes(a, b, *c)).map(|c| a + b + c - 3)).min();
        assert_eq!(Some(u128::from(counting_bound(SchemeKind::Fused, range, 9, base))), least);
        // 9 inner tokens: c^9 >= 2.7e16, 66.9 of them.
        assert_eq!(counting_bound(SchemeKind::Separate, range, 11, base), 66);
        assert_eq!(counting_bound(SchemeKind::Separate, range, 11, UsableTokens { inner: 66, ..base }), 1);
        assert_eq!(counting_bound(SchemeKind::Separate, range, 11, UsableTokens { inner: 67, ..base }), 0);
    }
}
