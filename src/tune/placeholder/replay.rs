//! Replay: the effect of a position template on a model that wants to write the real block.
//!
//! The first F tokens of the block survive. If F < T, digits are lost (*truncation*); if F > T, F - T slots are left over (*junk
//! slots*). The surviving text is parsed as three numbers `-?digits[.[digits]]`.

use drift_core::Encoding;
use drift_core::encoding::{Fixed, Precision};
use drift_core::tokenizer::BlockTokens;

/// The largest number of cuts of a block that leave three numbers but not the whole block, because z has at most eleven characters.
const MAX_CUTS: usize = 12;

/// The remains of one block for every F.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockReplay {
    /// T, the number of tokens of the block.
    pub tokens: u8,
    /// The smallest F that leaves three numbers; T if only the whole block does.
    pub parsable_from: u8,
    /// The number of decimals, which sets the unit of the errors.
    pub precision: Precision,
    /// `errors[F - parsable_from]`: the error of z in units of its last decimal, for `parsable_from` ≤ F < T. Only z can have an
    /// error: a cut before it leaves no third number.
    pub errors: [u32; MAX_CUTS],
}

impl BlockReplay {
    /// Returns the error of z in units of its last decimal if F tokens survive; `None` if the result cannot be parsed.
    pub fn error(&self, survive: u8) -> Option<u32> {
        let cut = survive.checked_sub(self.parsable_from)?;
        if survive >= self.tokens { Some(0) } else { Some(self.errors[usize::from(cut)]) }
    }

    /// Returns the square of that error, in squares of that unit; 0 if the result cannot be parsed.
    pub(crate) fn squared_error(&self, survive: u8) -> u64 {
        let error = u64::from(self.error(survive).unwrap_or(0));
        error.saturating_mul(error)
    }
}

/// Replays one block. `inside` is its text between the brackets, in `encoding`; `z` is its third value in units of the last decimal
/// (for bins, the index); `tokens` are the tokens of the block in its whole text.
pub fn replay(inside: &[u8], z: Fixed, tokens: &BlockTokens, encoding: Encoding) -> BlockReplay {
    let z_start = last_number(inside, encoding);
    let mut out = BlockReplay {
        tokens: tokens.free,
        parsable_from: tokens.free,
        precision: encoding.precision(),
        errors: [0; MAX_CUTS],
    };
    let mut found = [0u32; MAX_CUTS];
    let mut count = 0;
    // From the longest cut to the shortest. A cut that removes z is followed only by cuts that remove it too, so the first failure
    // ends the loop.
    for survive in (1..tokens.free).rev() {
        let end = usize::from(tokens.ends[usize::from(survive) - 1]);
        let Some(left) = inside.get(z_start..end).and_then(|text| encoding.left_over(text)) else { break };
        // The array has room for all cuts of a legal z. Further cuts would count as unparsable, which overstates harm.
        let Some(slot) = found.get_mut(count) else { break };
        *slot = distance(left, z, encoding);
        count += 1;
        out.parsable_from = survive;
    }
    // They were found from the longest cut down, but [`BlockReplay::error`] looks them up from the shortest.
    found[..count].reverse();
    out.errors[..count].copy_from_slice(&found[..count]);
    out
}

/// Returns the byte at which the last number of a slot begins.
fn last_number(inside: &[u8], encoding: Encoding) -> usize {
    match encoding.separator().as_bytes() {
        // Without separators a cut number leaves nothing to read. A single number begins at the start of the slot.
        [] => 0,
        separator => memchr::memmem::rfind(inside, separator).map_or(0, |at| at + separator.len()),
    }
}

/// Returns the distance of two values of z in units of the last decimal; for bins, the distance of the values that they represent.
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
        // Each character is one token, except that `,-` is one.
        let replayed =
            replay(inside, -29_876, &tokens(&[1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13]), Encoding::STRIPPED);
        assert_eq!((replayed.tokens, replayed.parsable_from), (12, 7));
        let errors: Vec<_> = (6..14).map(|f| replayed.error(f)).collect();
        assert_eq!(errors, [None, Some(9_876), Some(9_876), Some(876), Some(76), Some(6), Some(0), Some(0)]);
    }
}
