//! Encodes the text around blocks by combining the steps of a base whose tokens are written in text. The result is the reference
//! against which an extension is checked.

use drift_core::tokenizer::TextPart;
use drift_core::{Error, Result, Tokenizer};

/// Returns the ids of the text before, between and after the occurrences of `block` in a text, if each block is a separate piece. Added
/// tokens are matched first, the rest is normalized with spaces marked, and the model encodes the parts between blocks.
///
/// # Errors
/// If the base has no token for a character.
pub(in crate::design) fn ids_around_blocks(
    base: &Tokenizer,
    text: &str,
    block: &str,
) -> Result<Vec<Vec<u32>>> {
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    for section in base.sections(text)? {
        match section {
            TextPart::Added(ids) => part.extend(ids),
            TextPart::Piece(piece) => {
                for (at, between) in piece.split(block).enumerate() {
                    if at > 0 {
                        parts.push(std::mem::take(&mut part));
                    }
                    if between.is_empty() {
                        continue;
                    }
                    let Some(ids) = base.model_ids(between) else {
                        let text = drift_core::error::excerpt(text.as_bytes());
                        let problem = format!("cannot encode {text}: no token for a character");
                        return Err(Error::input(&base.name, problem, ""));
                    };
                    part.extend(ids);
                }
            }
        }
    }
    parts.push(part);
    Ok(parts)
}
