//! What stands around blocks, as the parts of a base whose tokens are written in text make it: the reference that an
//! extension is checked against.

use tokenizers::tokenizer::{OffsetReferential, OffsetType, PreTokenizer};

use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

/// The ids of what stands before, between and after the places of `block` in a text, if each is a piece of its own: added
/// tokens are taken out, the rest is normalised and marked for spaces, and the model encodes what is between blocks.
///
/// # Errors
/// If the base cannot encode it.
pub(super) fn around(base: &Tokenizer, text: &str, block: &str) -> Result<Vec<Vec<u32>>> {
    let refuse = |problem: &dyn std::fmt::Display| {
        let text = crate::error::excerpt(text.as_bytes());
        Error::input(&base.name, format!("cannot encode {text}: {problem}"), "")
    };
    let inner = base.inner();
    let mut pieces = inner.get_added_vocabulary().extract_and_normalize(inner.get_normalizer(), text);
    if let Some(pre_tokenizer) = inner.get_pre_tokenizer() {
        pre_tokenizer.pre_tokenize(&mut pieces).map_err(|e| refuse(&e))?;
    }
    let mut parts = vec![Vec::new()];
    let mut put = |ids: Vec<u32>, next: bool| {
        if next {
            parts.push(Vec::new());
        }
        parts.last_mut().into_iter().for_each(|part: &mut Vec<u32>| part.extend(&ids));
    };
    for (piece, _, tokens) in pieces.get_splits(OffsetReferential::Original, OffsetType::Byte) {
        if let Some(tokens) = tokens {
            put(tokens.iter().map(|token| token.id).collect(), false);
            continue;
        }
        for (at, text) in piece.split(block).enumerate() {
            let ids = if text.is_empty() { Some(Vec::new()) } else { base.model_ids(text) };
            put(ids.ok_or_else(|| refuse(&"no token for a character"))?, at > 0);
        }
    }
    Ok(parts)
}
