//! A bound by distinct digits: the number of new tokens that blocks with only one or two different digits need, whatever the other
//! tokens are.
//!
//! Call the number of different digits of a token its *kinds*. Let S be a set of k digits, and consider the blocks that have no
//! other digits. Their tokens have no other digits either, so they are spelled with tokens of fewer kinds and tokens whose digits
//! are exactly S. Assume that every token of fewer than k kinds is available for free. If even then no set of g - 1 new tokens of k
//! kinds is enough to spell all these blocks with at most N tokens each, then at least g are needed for S and, by renaming digits,
//! for every set of k digits. Tokens of different sets differ, and so do tokens of different kinds. With D digits to choose from,
//! of which a number with one integer digit can consist:
//!
//! ```text
//! new tokens ≥ Σ over k of C(D, k) · g(k)
//! ```
//!
//! An exhaustive search shows that g - 1 tokens are not enough. A block that cannot be spelled yet needs a new token that is a part
//! of it, so it is enough to try the parts of one such block one after the other. Only a sample of blocks is used, which can only
//! make g smaller. A token of the base is assumed to be available for every S if it is for one.

use std::collections::{BTreeSet, HashSet};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::cuts::SchemeKind;
use super::grammar::Grammar;

/// The largest number of kinds, and the largest number of tokens tried at a time.
const MOST_KINDS: usize = 2;
const MOST_TOKENS: usize = 3;

/// The number of blocks that are drawn, and the number of the hardest ones that are kept.
const DRAWN: usize = 10_000;
const HARDEST: usize = 40;

/// The number of token sets after which the search gives up and keeps the g found so far.
const MOST_TRIES: usize = 20_000;

/// Returns the smallest number of new tokens that blocks with few kinds of digits need, if each has at most `tokens` tokens.
pub(crate) fn distinct_digits_bound<'v>(
    kind: SchemeKind,
    grammar: Grammar,
    tokens: usize,
    base: impl Iterator<Item = &'v str>,
) -> u64 {
    if !grammar.encoding().is_decimal() {
        // The sampled blocks are decimals.
        return 0;
    }
    // In the stripped encoding the last decimal is not zero, so no block consists only of zeros.
    let zero = u64::from(grammar.is_stripped());
    let digits = u64::from(grammar.range.angstrom().min(10)).saturating_sub(zero);
    let known: HashSet<Vec<u8>> =
        // No sampled block is longer, so no longer token can be a part of one.
        base.filter(|token| token.len() <= 32).filter_map(|t| renamed(t.as_bytes())).collect();
    (1..=MOST_KINDS.min(digits as usize))
        .map(|kinds| {
            // The binomial coefficient C(digits, kinds); each division has no remainder.
            let sets = (0..kinds as u64).fold(1, |sets, n| sets * (digits - n) / (n + 1));
            sets * Universe::new(kind, kinds, grammar.decimals(), tokens, &known).fewest() as u64
        })
        .sum()
}

/// Returns a text with its digits renamed in order of first occurrence; `None` if it contains characters that blocks do not.
fn renamed(text: &[u8]) -> Option<Vec<u8>> {
    let mut names = Vec::new();
    let renamed = text.iter().map(|byte| match byte {
        b'0'..=b'9' => {
            let at = names.iter().position(|name| name == byte);
            Some(
                b'0' + at.unwrap_or_else(|| {
                    names.push(*byte);
                    names.len() - 1
                }) as u8,
            )
        }
        b'<' | b'-' | b'.' | b',' | b'>' => Some(*byte),
        _ => None,
    });
    renamed.collect()
}

/// Returns the set of a text's digits as bits.
fn digits(text: &[u8]) -> u16 {
    text.iter().filter(|byte| byte.is_ascii_digit()).fold(0, |digits, byte| digits | 1 << (byte - b'0'))
}

/// Blocks made of the first few digits, and the tokens with which they may be spelled.
struct Universe<'b> {
    kind: SchemeKind,
    kinds: usize,
    tokens: usize,
    base: &'b HashSet<Vec<u8>>,
    /// The sample of blocks.
    blocks: Vec<Vec<u8>>,
    /// For each block of the sample, whether the part from one byte to another is available for free.
    free: Vec<Vec<bool>>,
    tries: usize,
}

impl<'b> Universe<'b> {
    fn new(
        kind: SchemeKind,
        kinds: usize,
        decimals: usize,
        tokens: usize,
        base: &'b HashSet<Vec<u8>>,
    ) -> Self {
        let mut universe =
            Universe { kind, kinds, tokens, base, blocks: Vec::new(), free: Vec::new(), tries: 0 };
        let mut drawn: Vec<(usize, Vec<u8>)> = (sample(kinds, 1 + decimals).into_iter())
            .map(|block| (universe.length(&block, &universe.free_parts(&block), &[]), block))
            .collect();
        // Hardest first: a block that takes many tokens excludes more choices than an easy one.
        drawn.sort_by(|a, b| b.cmp(a));
        drawn.dedup();
        universe.blocks = drawn.iter().take(HARDEST).map(|(_, block)| block.clone()).collect();
        universe.free = universe.blocks.iter().map(|block| universe.free_parts(block)).collect();
        universe
    }

    /// Returns the bound g: the smallest number of new tokens with as many kinds that can be enough.
    fn fewest(mut self) -> usize {
        (0..=MOST_TOKENS).find(|more| self.enough(&mut Vec::new(), *more)).unwrap_or(MOST_TOKENS + 1)
    }

    /// Returns whether some `more` further tokens can be enough together with `new`. True if there are too many sets to try.
    fn enough(&mut self, new: &mut Vec<Vec<u8>>, more: usize) -> bool {
        self.tries += 1;
        let unspelled: Vec<usize> = (0..self.blocks.len())
            .filter(|at| self.length(&self.blocks[*at], &self.free[*at], new) > self.tokens)
            .collect();
        let Some(&first) = unspelled.first() else { return true };
        if more == 0 {
            return false;
        }
        // Giving up counts as "enough": this can only make g smaller, so the bound stays valid.
        if self.tries > MOST_TRIES {
            return true;
        }
        let parts = if more == 1 {
            // The last token must be a part of every remaining block.
            let mut parts = self.parts(first);
            for &at in &unspelled[1..] {
                parts.retain(|part| self.blocks[at].windows(part.len()).any(|window| window == part));
            }
            parts
        } else {
            let all = unspelled.iter().map(|at| self.parts(*at));
            // Every remaining block needs a new token that is a part of it, so the block with the fewest parts gives the fewest
            // branches.
            all.min_by_key(BTreeSet::len).unwrap_or_default()
        };
        parts.into_iter().any(|part| {
            new.push(part);
            let enough = self.enough(new, more - 1);
            new.pop();
            enough
        })
    }

    /// Returns whether a token with this text is available for free.
    fn is_free(&self, part: &[u8]) -> bool {
        let kinds = digits(part).count_ones() as usize;
        self.is_allowed(part)
            && (kinds < self.kinds || renamed(part).is_some_and(|part| self.base.contains(&part)))
    }

    fn is_allowed(&self, part: &[u8]) -> bool {
        self.kind == SchemeKind::Fused || part.len() == 1 || !part.iter().any(|byte| b"<>".contains(byte))
    }

    /// For each part of a block, by its first byte and the byte after its last: whether it is available for free.
    fn free_parts(&self, block: &[u8]) -> Vec<bool> {
        let side = block.len() + 1;
        (0..side * side)
            .map(|at| (at / side, at % side))
            .map(|(start, end)| start < end && self.is_free(&block[start..end]))
            .collect()
    }

    /// Returns the possible new tokens that are parts of a block of the sample.
    fn parts(&self, at: usize) -> BTreeSet<Vec<u8>> {
        let block = &self.blocks[at];
        let all =
            (0..block.len()).flat_map(|start| (start + 1..=block.len()).map(move |end| &block[start..end]));
        let new = all.filter(|part| {
            digits(part).count_ones() as usize == self.kinds && self.is_allowed(part) && !self.is_free(part)
        });
        new.map(<[u8]>::to_vec).collect()
    }

    /// Returns the smallest number of tokens with which a block can be spelled.
    fn length(&self, block: &[u8], free: &[bool], new: &[Vec<u8>]) -> usize {
        let side = block.len() + 1;
        // One less than the maximum, so that a step from an unreachable position does not overflow.
        let mut fewest = vec![usize::MAX - 1; side];
        fewest[0] = 0;
        for start in 0..block.len() {
            let next = fewest[start].saturating_add(1);
            for end in start + 1..side {
                if free[start * side + end] {
                    fewest[end] = fewest[end].min(next);
                }
            }
            for token in new.iter().filter(|token| block[start..].starts_with(token)) {
                fewest[start + token.len()] = fewest[start + token.len()].min(next);
            }
        }
        fewest[block.len()]
    }
}

/// Blocks made of the first few digits, with `length` digits per number: all blocks with three equal numbers, and random ones.
fn sample(kinds: usize, length: usize) -> Vec<Vec<u8>> {
    let all = (kinds as u32).pow(length as u32);
    let number = |index: u32, negative: bool| {
        let digits: Vec<u8> = (0..length as u32)
            .map(|at| b'0' + (index / (kinds as u32).pow(at) % kinds as u32) as u8)
            .collect();
        let sign = if negative { &b"-"[..] } else { b"" };
        [sign, &digits[..1], b".", &digits[1..]].concat()
    };
    let block = |numbers: [Vec<u8>; 3]| [b"<", &*numbers.join(&b','), b">"].concat();
    let alike = (0..2 * all).map(|index| [(); 3].map(|()| number(index / 2, index % 2 == 1))).map(block);
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let drawn = (0..DRAWN)
        .map(|_| [(); 3].map(|()| number(random.random_range(0..all), random.random_range(0..2) == 1)));
    alike.chain(drawn.map(block)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::fixed_grammar;

    fn bound(kind: SchemeKind, tokens: usize, base: &[&str]) -> u64 {
        distinct_digits_bound(kind, fixed_grammar(15, 4), tokens, base.iter().copied())
    }

    #[test]
    fn blocks_of_few_digits_need_tokens_of_their_own() {
        let base = ["<", ">", "-", ".", ",", "0", "1", "7"];
        // In 22 tokens every character has its own, but signs: those share with `<` and `,`, and no digit is needed.
        assert_eq!(bound(SchemeKind::Fused, 25, &base), 0);
        // `12` and `21` for each pair, and a token of one kind, such as `.1111`, for each digit.
        assert_eq!(bound(SchemeKind::Separate, 11, &base), 45 * 2 + 10);
        // With all pairs in the base they are not needed; `1` with `2` stands for every pair.
        assert_eq!(bound(SchemeKind::Separate, 11, &[&base[..], &["12"]].concat()), 10);
        assert!(bound(SchemeKind::Fused, 9, &base) >= 45 * 3 + 10);
    }

    #[test]
    fn a_set_that_is_enough_is_never_ruled_out() {
        // All pairs of two digits with and without `>`, and heads: the scheme of 9 tokens.
        let known = HashSet::new();
        let mut universe = Universe::new(SchemeKind::Fused, 2, 4, 9, &known);
        let mut pairs = ["01", "10", "01>", "10>"].map(|pair| pair.as_bytes().to_vec()).to_vec();
        assert!(universe.enough(&mut pairs, 0));
        pairs.truncate(2);
        assert!(!universe.enough(&mut pairs, 0));
    }
}
