//! The FREE tokens of a block.

use super::load::Tokenizer;
use crate::error::Result;

/// The most FREE tokens in a block's record: more than a legal block has characters.
pub const MAX_BLOCK_TOKENS: usize = 40;

/// The FREE tokens of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockTokens {
    /// T: the number of FREE tokens.
    pub free: u8,
    /// The end of each token, in bytes after the `<`; entries from `free` on are zero.
    pub ends: [u8; MAX_BLOCK_TOKENS],
}

impl Default for BlockTokens {
    fn default() -> Self {
        BlockTokens { free: 0, ends: [0; MAX_BLOCK_TOKENS] }
    }
}

impl BlockTokens {
    /// Returns the record of the ends of a block's tokens, which are given as in [`super::InBlocks`].
    ///
    /// # Errors
    /// If there are more than [`MAX_BLOCK_TOKENS`]. The message names the tokenizer.
    pub fn from_ends(ends: &[usize], tokenizer: &Tokenizer) -> Result<Self> {
        block_tokens(ends).ok_or_else(|| {
            let problem = format!("a block takes {} tokens", ends.len());
            crate::Error::input(&tokenizer.name, problem, "blocks contain three numbers below 10⁵ Å")
        })
    }
}

/// Returns the record of a list of ends; `None` if it is too long.
pub(super) fn block_tokens(ends: &[usize]) -> Option<BlockTokens> {
    let mut tokens = BlockTokens::default();
    for &end in ends {
        *tokens.ends.get_mut(usize::from(tokens.free))? = u8::try_from(end).ok()?;
        tokens.free += 1;
    }
    Some(tokens)
}
