//! Numbers of FREE tokens that a placeholder can come to, with the best placeholder for each; and the spellings that they are
//! put together from.

use std::collections::BTreeMap;

use drift_core::error::{Error, Result};
use drift_core::text::skeleton;
use drift_core::tokenizer::{Counter, MAX_BLOCK_TOKENS};

/// Numbers of FREE tokens and the placeholders that come to them.
pub struct Attainable {
    /// By F, the placeholder of fewest characters, then smallest bytes, of those below [`USUAL`] if there is one.
    pub best: BTreeMap<u8, String>,
    /// Why these are all; or why others are not excluded.
    pub complete: std::result::Result<String, String>,
    /// Whether that these are all is proved; else it was tried.
    pub proved: bool,
}

impl Attainable {
    /// The FREE tokens that every slot takes; none if they differ, or that these are all is not proved.
    pub fn constant(&self) -> Option<u32> {
        let only =
            self.best.keys().next().filter(|_| self.best.len() == 1 && self.proved && self.complete.is_ok());
        only.map(|tokens| u32::from(*tokens))
    }
}

/// Å. Writers never write more, so placeholders hold more only where that takes a number of tokens that no other does.
pub(super) const USUAL: u16 = 100;

/// The smallest spelling by tokens and characters. Of two texts of the same length the smaller one stays smaller
/// whatever follows both.
pub(super) type Spellings = BTreeMap<(u16, usize), String>;

/// Keeps the smaller of two spellings of the same tokens and length.
pub(super) fn keep(spellings: &mut Spellings, tokens: u16, text: String) {
    let kept = spellings.entry((tokens, text.len())).or_insert_with(|| text.clone());
    if text < *kept {
        *kept = text;
    }
}

/// The sums of two parts that stand side by side.
pub(super) fn joined(heads: &Spellings, tails: &Spellings) -> Spellings {
    let mut out = Spellings::new();
    for ((a, _), head) in heads {
        for ((b, _), tail) in tails {
            keep(&mut out, a + b, format!("{head}{tail}"));
        }
    }
    out
}

/// The best spelling of each number of tokens that a record of a block holds.
pub(super) fn best(spellings: Spellings) -> BTreeMap<u8, String> {
    let mut best = BTreeMap::new();
    for ((tokens, _), text) in spellings {
        if usize::from(tokens) <= MAX_BLOCK_TOKENS {
            // Ordered by length within one number of tokens.
            best.entry(tokens as u8).or_insert(text);
        }
    }
    best
}

/// F of a placeholder, by the counter, in the middle of a text.
///
/// # Errors
/// If it cannot be encoded, or is not the inside of one block.
pub fn free_tokens(counter: &Counter<'_>, placeholder: &str) -> Result<u8> {
    // The second slot is read: another slot and an atom stand before it, as before most slots of a text.
    let mut counts = Vec::with_capacity(2);
    let template = skeleton::fill("[C]<>[C]<>", placeholder, counter.encoding());
    counter.count(&template, &mut counts)?;
    // Of slots behind every symbol, any will do.
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

/// What the counter says against placeholders by their parts' tokens; none if it agrees.
pub(super) fn misfit(counter: &Counter<'_>, found: &BTreeMap<u8, String>) -> Result<Option<String>> {
    for (&tokens, text) in found {
        if free_tokens(counter, text)? != tokens {
            return Ok(Some(format!("`{text}` does not take the {tokens} tokens of its parts")));
        }
    }
    Ok(None)
}

/// Takes what is not there yet.
pub(super) fn fill(found: &mut BTreeMap<u8, String>, more: BTreeMap<u8, String>) {
    for (tokens, text) in more {
        found.entry(tokens).or_insert(text);
    }
}
