//! The new tokens, and how the base encodes them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::layout::ids_inside;
use drift_core::{Result, Tokenizer};

/// The new tokens, and how the base encodes them: the contents of the file `new_tokens.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewTokens {
    /// The format, `drift.new-tokens/1`.
    pub schema: &'static str,
    /// The base's name.
    pub base: String,
    /// The new tokens, sorted by id.
    pub new_tokens: Vec<NewToken>,
}

/// One new token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewToken {
    /// Its id.
    pub id: u32,
    /// Its text.
    pub text: String,
    /// The ids to which the base encodes the token's text.
    pub base_ids: Vec<u32>,
    /// The old token whose id it took, if that token was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

/// Returns the new tokens with the base's ids for their texts inside a text. `gone` are the removed tokens by the id that they had.
pub(in crate::design) fn list(
    base: &Tokenizer,
    added: &[(u32, String)],
    gone: &BTreeMap<u32, String>,
) -> Result<NewTokens> {
    let new_tokens: Result<Vec<NewToken>> = added
        .iter()
        .map(|(id, text)| {
            let (text, replaces) = (text.clone(), gone.get(id).cloned());
            Ok(NewToken { id: *id, base_ids: ids_inside(base, &text)?, text, replaces })
        })
        .collect();
    Ok(NewTokens { schema: "drift.new-tokens/1", base: base.name.clone(), new_tokens: new_tokens? })
}
