//! Replay: what a position template does to a model that wants to write the real block.
//!
//! The first F tokens of the block survive. If F < T, digits are lost (*truncation*); if F > T, F - T slots are left
//! over (*junk slots*). What survives is parsed as three numbers `-?digits[.[digits]]`.

use drift_core::encoding::{Encoding, Fixed, Precision};
use drift_core::tokenizer::BlockTokens;

/// The most cuts of a block that leave three numbers but not all of it: z has at most eleven characters.
const MAX_CUTS: usize = 12;

/// What is left of one block at every F.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockReplay {
    /// T.
    pub tokens: u8,
    /// The smallest F that leaves three numbers; T if only the whole block does.
    pub parsable_from: u8,
    /// The decimals of its numbers, which errors are in units of.
    pub precision: Precision,
    /// `errors[F - parsable_from]`: how far z is off, in units of its last decimal, for `parsable_from` ≤ F < T. Only z can be: a cut
    /// before it leaves no third number.
    pub errors: [u32; MAX_CUTS],
}

impl BlockReplay {
    /// The error of z, in units of its last decimal, if F tokens survive; `None` if that is unparsable.
    pub fn error(&self, survive: u8) -> Option<u32> {
        let cut = survive.checked_sub(self.parsable_from)?;
        if survive >= self.tokens { Some(0) } else { Some(self.errors[usize::from(cut)]) }
    }

    /// The square of that error, in squares of that unit; 0 if what survives is unparsable.
    pub fn squared_error(&self, survive: u8) -> u64 {
        let error = u64::from(self.error(survive).unwrap_or(0));
        error.saturating_mul(error)
    }
}

/// Replays one block: `inside` is its text between the brackets, in `dialect`; `z` is its third value in units of the last
/// decimal (of bins, the index); `tokens` are those that the block takes in its whole text.
pub fn replay(inside: &[u8], z: Fixed, tokens: &BlockTokens, dialect: Encoding) -> BlockReplay {
    let z_start = last_number(inside, dialect);
    let mut out = BlockReplay {
        tokens: tokens.free,
        parsable_from: tokens.free,
        precision: dialect.precision(),
        errors: [0; MAX_CUTS],
    };
    let mut found = [0u32; MAX_CUTS];
    let mut count = 0;
    // From the longest cut to the shortest: once z is gone, it is gone for every shorter cut, so the first failure ends the
    // walk.
    for survive in (1..tokens.free).rev() {
        let end = usize::from(tokens.ends[usize::from(survive) - 1]);
        let Some(left) = inside.get(z_start..end).and_then(|text| dialect.left_over(text)) else { break };
        // The table holds all cuts of a legal z. Were there more, those F would count as unparsable, which overstates harm.
        let Some(slot) = found.get_mut(count) else { break };
        *slot = distance(left, z, dialect);
        count += 1;
        out.parsable_from = survive;
    }
    // They were found from the longest cut down, and [`BlockReplay::error`] looks up from the shortest.
    found[..count].reverse();
    out.errors[..count].copy_from_slice(&found[..count]);
    out
}

/// Where the last number of a slot begins.
fn last_number(inside: &[u8], encoding: Encoding) -> usize {
    match encoding.separator().as_bytes() {
        // Without separators nothing is left of a number that is cut; a single number is the first.
        [] => 0,
        separator => memchr::memmem::rfind(inside, separator).map_or(0, |at| at + separator.len()),
    }
}

/// How far two values of z are apart, in units of the last decimal; of bins, what they stand for.
fn distance(left: Fixed, z: Fixed, encoding: Encoding) -> u32 {
    if encoding.is_decimal() {
        return left.abs_diff(z);
    }
    let (_, most) = encoding.number().limits(2);
    let at = |value: Fixed| encoding.number().angstrom(value.min(most), 2).unwrap_or_default();
    ((at(left) - at(z)).abs() * f64::from(encoding.precision().units_per_angstrom())).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(ends: &[u8]) -> BlockTokens {
        let mut tokens = BlockTokens { free: ends.len() as u8, ..BlockTokens::default() };
        tokens.ends[..ends.len()].copy_from_slice(ends);
        tokens
    }

    #[test]
    fn losing_digits_of_z_is_an_error_and_losing_z_is_unparsable() {
        let inside = b"0.5,1,-2.9876";
        // One token a character, but `,-` together.
        let replayed =
            replay(inside, -29_876, &tokens(&[1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13]), Encoding::STRIPPED);
        assert_eq!((replayed.tokens, replayed.parsable_from), (12, 7));
        let errors: Vec<_> = (6..14).map(|f| replayed.error(f)).collect();
        assert_eq!(errors, [None, Some(9_876), Some(9_876), Some(876), Some(76), Some(6), Some(0), Some(0)]);
    }
}
