//! The numbers of FREE tokens that placeholders can have, with the best placeholder for each, and the spellings from which
//! placeholders are composed.

use std::collections::BTreeMap;

use drift_core::text::skeleton;
use drift_core::tokenizer::{Counter, MAX_BLOCK_TOKENS};
use drift_core::{Error, Result};

/// The possible numbers of FREE tokens, with placeholders that have them.
pub struct AttainableTokens {
    /// By F, the placeholder with the fewest characters, then the smallest bytes, among those below [`USUAL`] if there are any.
    pub best: BTreeMap<u8, String>,
    /// The reason why these are all possible numbers, or the reason why others are not excluded.
    pub complete: std::result::Result<String, String>,
    /// Whether completeness is proved rather than only tested.
    pub proved: bool,
}

impl AttainableTokens {
    /// Returns the number of FREE tokens that every slot takes. `None` if it varies, or if completeness is not proved.
    pub fn constant(&self) -> Option<u32> {
        let only =
            self.best.keys().next().filter(|_| self.best.len() == 1 && self.proved && self.complete.is_ok());
        only.map(|tokens| u32::from(*tokens))
    }
}

/// In Å. Writers never write larger numbers, so placeholders contain larger ones only if a number of tokens cannot be reached
/// otherwise.
pub(super) const USUAL: u16 = 100;

/// The smallest spelling by number of tokens and of characters. Of two texts of the same length, the smaller one stays smaller
/// whatever follows both.
pub(super) type Spellings = BTreeMap<(u16, usize), String>;

/// Keeps the smaller of two spellings with the same number of tokens and length.
pub(super) fn keep(spellings: &mut Spellings, tokens: u16, text: String) {
    let kept = spellings.entry((tokens, text.len())).or_insert_with(|| text.clone());
    if text < *kept {
        *kept = text;
    }
}

/// Returns the concatenations of two parts.
pub(super) fn joined(heads: &Spellings, tails: &Spellings) -> Spellings {
    let mut out = Spellings::new();
    for ((a, _), head) in heads {
        for ((b, _), tail) in tails {
            keep(&mut out, a + b, format!("{head}{tail}"));
        }
    }
    out
}

/// Returns the best spelling for each number of tokens that a record of a block can hold.
pub(super) fn best(spellings: Spellings) -> BTreeMap<u8, String> {
    let mut best = BTreeMap::new();
    for ((tokens, _), text) in spellings {
        if usize::from(tokens) <= MAX_BLOCK_TOKENS {
            // Within one number of tokens, spellings are ordered by length.
            best.entry(tokens as u8).or_insert(text);
        }
    }
    best
}

/// Returns the F of a placeholder in the middle of a text, according to the counter.
///
/// # Errors
/// If it cannot be encoded, or is not the content of one block.
pub fn free_tokens(counter: &Counter<'_>, placeholder: &str) -> Result<u8> {
    // The second slot is used: another slot and an atom precede it, as for most slots of a text.
    let mut counts = Vec::with_capacity(2);
    let template = skeleton::fill("[C]<>[C]<>", placeholder, counter.encoding());
    counter.count(&template, &mut counts)?;
    // If the encoding has slots after every symbol, any slot will do.
    counts.drain(..counts.len().saturating_sub(2));
    match counts.as_slice() {
        [_, count] if usize::from(*count) <= MAX_BLOCK_TOKENS => Ok(*count as u8),
        _ => Err(Error::input(
            format!("placeholder `{placeholder}`"),
            "not the content of one block, or too long",
            "give three numbers such as 0.0000,0.0000,0.0000",
        )),
    }
}

/// Returns the first placeholder for which the counter disagrees with the tokens of its parts, as a message; `None` if they agree.
pub(super) fn misfit(counter: &Counter<'_>, found: &BTreeMap<u8, String>) -> Result<Option<String>> {
    for (&tokens, text) in found {
        if free_tokens(counter, text)? != tokens {
            return Ok(Some(format!("`{text}` does not take the {tokens} tokens of its parts")));
        }
    }
    Ok(None)
}

/// Adds the entries that do not exist yet.
pub(super) fn fill(found: &mut BTreeMap<u8, String>, more: BTreeMap<u8, String>) {
    for (tokens, text) in more {
        found.entry(tokens).or_insert(text);
    }
}
