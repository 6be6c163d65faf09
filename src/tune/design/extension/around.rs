//! What stands around blocks, as the parts of a base whose tokens are written in text make it: the reference that an
//! extension is checked against.

use drift_core::error::{Error, Result};
use drift_core::tokenizer::{TextPart, Tokenizer};

/// The ids of what stands before, between and after the places of `block` in a text, if each is a piece of its own: added
/// tokens are taken out, the rest is normalised and marked for spaces, and the model encodes what is between blocks.
///
/// # Errors
/// If the base cannot encode it.
pub(super) fn around(base: &Tokenizer, text: &str, block: &str) -> Result<Vec<Vec<u32>>> {
    let refuse = || {
        let problem = format!(
            "cannot encode {}: no token for a character",
            drift_core::error::excerpt(text.as_bytes())
        );
        Error::input(&base.name, problem, "")
    };
    let mut parts = vec![Vec::new()];
    let mut put = |ids: Vec<u32>, next: bool| {
        if next {
            parts.push(Vec::new());
        }
        parts.last_mut().into_iter().for_each(|part: &mut Vec<u32>| part.extend(&ids));
    };
    for section in base.sections(text)? {
        match section {
            TextPart::Added(ids) => put(ids, false),
            TextPart::Piece(piece) => {
                for (at, text) in piece.split(block).enumerate() {
                    let ids = if text.is_empty() { Some(Vec::new()) } else { base.model_ids(text) };
                    put(ids.ok_or_else(refuse)?, at > 0);
                }
            }
        }
    }
    Ok(parts)
}
