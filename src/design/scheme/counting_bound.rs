//! The counting bound: a number of new tokens that no scheme can do without.
//!
//! Let every one of the M blocks of a range take exactly N tokens, the first beginning at `<` and the last ending at `>`.
//! Decoding gives the block back, so different blocks have different token sequences. A token that begins with `<` can
//! only be the first, one that ends with `>` only the last. With a, b and c tokens of these two and of all other sorts
//!
//! ```text
//! M ≤ a · b · c^(N - 2)
//! ```
//!
//! and each of a, b, c is at most the base's own tokens that can occur in a block, plus new ones. In the separate kind
//! the first token is `<` and the last `>`, so a = b = 1. The bound knows nothing of slots: it holds for tokens of any
//! text, also where they are cut inside an integer part.

use super::cuts::SchemeKind;
use super::grammar::Grammar;
use super::slots::BlockSlot;

/// Tokens that can occur in a block, by where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usable {
    /// They begin with `<`.
    pub first: u64,
    /// They end with `>`.
    pub last: u64,
    /// All others.
    pub inner: u64,
}

impl Usable {
    /// Counts the tokens of a vocabulary that can be part of some block.
    pub fn of<'v>(grammar: Grammar, vocabulary: impl Iterator<Item = &'v str>) -> Self {
        let mut usable = Usable::default();
        for token in vocabulary.filter(|token| occurs_in_a_block(grammar, token)) {
            if token.starts_with('<') {
                usable.first += 1;
            } else if token.ends_with('>') {
                usable.last += 1;
            } else {
                usable.inner += 1;
            }
        }
        usable
    }
}

/// The fewest new tokens that any scheme of `tokens` tokens a block needs; `tokens` is at least 3.
pub fn counting_bound(kind: SchemeKind, grammar: Grammar, tokens: usize, base: Usable) -> u64 {
    let blocks = u128::from(grammar.numbers()).pow(3);
    let mut counts = match kind {
        SchemeKind::Fused => [base.first, base.last, base.inner],
        SchemeKind::Separate => [1, 1, base.inner],
    };
    let power = tokens.saturating_sub(2).max(1) as u32;
    let reach = |[first, last, inner]: [u64; 3]| {
        let inner = u128::from(inner).checked_pow(power).unwrap_or(u128::MAX);
        u128::from(first).saturating_mul(u128::from(last)).saturating_mul(inner)
    };
    // The logarithm of the product is a sum of concave functions, so adding each token where it gains most is optimal.
    // The 1e-9 is far more than rounding can make the gain of a wrong choice.
    let enough = blocks - blocks / 1_000_000_000;
    let gain = |index: usize, count: u64| match (index, kind) {
        (0 | 1, SchemeKind::Separate) => f64::NEG_INFINITY,
        (2, _) => f64::from(power) * ((count + 1) as f64 / count as f64).ln(),
        _ => ((count + 1) as f64 / count as f64).ln(),
    };
    let mut new = 0;
    while reach(counts) < enough {
        let best = (0..3).max_by(|&a, &b| gain(a, counts[a]).total_cmp(&gain(b, counts[b])));
        counts[best.unwrap_or(2)] += 1;
        new += 1;
    }
    new
}

/// What is known of the tokens of every block of a range, and the bound that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proved {
    /// The fewest of any block.
    pub fewest: usize,
    /// The most.
    pub most: usize,
    /// No tokenizer of this kind does with fewer new tokens, if no block takes more than `most`.
    pub lower_bound: u64,
}

impl Proved {
    /// Of the fewest and the most tokens of any block, on top of a base.
    pub fn of(kind: SchemeKind, grammar: Grammar, (fewest, most): (usize, usize), base: Usable) -> Self {
        // Blocks of fewer tokens are filled up with one more sort of token, for the bound alone.
        let base = Usable { inner: base.inner + u64::from(fewest < most), ..base };
        Proved { fewest, most, lower_bound: counting_bound(kind, grammar, most, base) }
    }

    /// The largest difference between the tokens of a block and these.
    pub fn drift(&self, tokens: u64) -> u64 {
        tokens.abs_diff(self.fewest as u64).max(tokens.abs_diff(self.most as u64))
    }
}

/// Whether a string is part of some block with integer parts of one or two digits; of the stripped dialect also some
/// that end in zero.
pub(in crate::design) fn occurs_in_a_block(grammar: Grammar, string: &str) -> bool {
    // What a place takes, and how many places on one may go instead.
    let (fewest, decimals, row) = (grammar.fewest_decimals(), grammar.decimals(), grammar.row());
    let mut slots: Vec<(u8, usize)> = Vec::new();
    for (slot, known) in row.iter().enumerate() {
        let to_end = decimals + 3 - row.place(slot).1.min(decimals + 3);
        match known {
            BlockSlot::Open => slots.push((b'<', 0)),
            BlockSlot::Sign => slots.push((b'-', 1)),
            BlockSlot::Integer => slots.extend([(b'd', 1), (b'd', 0)]),
            BlockSlot::Point => slots.push((b'.', if fewest == 0 { to_end } else { 0 })),
            BlockSlot::Digit | BlockSlot::Last => {
                let decimal = decimals + 1 - to_end;
                slots.push((b'd', if decimal > fewest.max(1) { to_end } else { 0 }));
            }
            BlockSlot::Comma => slots.push((b',', 0)),
            BlockSlot::Close => slots.push((b'>', 0)),
        }
    }
    // Bit i: the next character may be that of place i.
    let skip = |mut places: u64| {
        for (at, (_, on)) in slots.iter().enumerate().filter(|(_, (_, on))| *on > 0) {
            if places >> at & 1 == 1 {
                places |= 1 << (at + on);
            }
        }
        places
    };
    let mut places = (1u64 << slots.len()) - 1;
    for byte in string.bytes() {
        let class = if byte.is_ascii_digit() { b'd' } else { byte };
        let taken =
            slots.iter().enumerate().filter(|(at, (slot, _))| places >> at & 1 == 1 && *slot == class);
        places = skip(taken.fold(0, |next, (at, _)| next | 1 << (at + 1)));
        if places == 0 {
            return false;
        }
    }
    !string.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::slots::Range;
    use crate::encoding::Precision;

    #[test]
    fn parts_of_blocks_are_known() {
        let range = Range::new(15).unwrap();
        let fixed = Grammar::fixed(range, Precision::FOUR);
        for part in ["<", "<-", "<-12.", ",-", "1234,", "34>", ".0", "1234", "4,-12.3456,7"] {
            assert!(occurs_in_a_block(fixed, part), "{part}");
        }
        for other in ["", "--", ">1", "]<", ".,", "12345", "a", ",,", "1<", "..", "->", "1,2,", ".12,"] {
            assert!(!occurs_in_a_block(fixed, other), "{other}");
        }
        let two = Grammar::stripped(range, Precision::FOUR, 2).unwrap();
        assert!(occurs_in_a_block(two, ".12,") && occurs_in_a_block(two, "<1.123,4.56,-7.1234>"));
        assert!(!occurs_in_a_block(two, ".1,") && !occurs_in_a_block(two, "<1,"));
        let all = Grammar::stripped(range, Precision::FOUR, 0).unwrap();
        assert!(occurs_in_a_block(all, "<1,2.5,-3>") && occurs_in_a_block(all, ".1,"));
        assert!(!occurs_in_a_block(all, ".,") && !occurs_in_a_block(all, ".12345"));
    }

    #[test]
    fn bounds_are_the_least_numbers_that_pass_the_inequality() {
        let range = Grammar::fixed(Range::new(15).unwrap(), Precision::FOUR);
        // 9 tokens from nothing: the least of all a + b + c, by trying them.
        let base = Usable { first: 1, last: 1, inner: 1 };
        let passes = |a: u128, b: u128, c: u128| a * b * c.pow(7) >= 27_000_000_000_000_000;
        let least = (1..60u128).flat_map(|a| (1..60u128).map(move |b| (a, b)));
        let least =
            least.filter_map(|(a, b)| (1..400).find(|c| passes(a, b, *c)).map(|c| a + b + c - 3)).min();
        assert_eq!(Some(u128::from(counting_bound(SchemeKind::Fused, range, 9, base))), least);
        // 9 inner tokens: c^9 >= 2.7e16, 66.9 of them.
        assert_eq!(counting_bound(SchemeKind::Separate, range, 11, base), 66);
        assert_eq!(counting_bound(SchemeKind::Separate, range, 11, Usable { inner: 66, ..base }), 1);
        assert_eq!(counting_bound(SchemeKind::Separate, range, 11, Usable { inner: 67, ..base }), 0);
    }
}
