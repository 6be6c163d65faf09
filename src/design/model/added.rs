//! What an extended tokenizer has more than the model's own.

use std::collections::{HashMap, HashSet};

use crate::design::extension::new_tokens::{NewTokens, list};
use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

/// The new tokens, and how many ids there are.
pub(super) struct Added {
    /// The new tokens, with the ids that the model's own tokenizer encodes them to.
    pub new: NewTokens,
    /// Tokens of the model's own tokenizer.
    pub old_tokens: u64,
    /// The largest id of the model's own tokenizer, and one.
    pub old_ids: u64,
    /// The same of the extended one.
    pub ids: u64,
}

/// What `extended` has more than `own`.
///
/// # Errors
/// If it is no extension: every token of `own` must keep its id.
pub(super) fn added(own: &Tokenizer, extended: &Tokenizer) -> Result<Added> {
    let [old, all] = [own, extended].map(Tokenizer::vocabulary);
    let differs = |(text, id): &(&String, &u32)| all.get(*text) != Some(*id);
    if let Some((text, id)) = old.iter().filter(differs).min_by_key(|(_, id)| **id) {
        let count = old.iter().filter(differs).count();
        let other = all.iter().find(|(_, other)| *other == id);
        let other = other.map_or("nothing".to_owned(), |(other, _)| format!("{other:?}"));
        let problem = format!(
            "is no extension of {}: {count} of its {} tokens differ, first id {id}, {other} instead of {text:?}",
            own.name,
            old.len()
        );
        let remedy = "extend the model's own tokenizer, with drift train-tokenizer --base";
        return Err(Error::input(&extended.source.name, problem, remedy));
    }
    let mut new: Vec<(u32, String)> = all
        .iter()
        .filter(|(spelled, _)| !old.contains_key(*spelled))
        .map(|(spelled, id)| Ok((*id, text(extended, *id, spelled)?)))
        .collect::<Result<_>>()?;
    new.sort();
    let taken: HashSet<u32> = old.values().copied().collect();
    let twice = |pair: &&[(u32, String)]| pair[0].0 == pair[1].0;
    let again =
        new.iter().find(|(id, _)| taken.contains(id)).or(new.windows(2).find(twice).map(|pair| &pair[1]));
    if let Some((id, text)) = again {
        let problem = format!("gives the new token {text:?} the id {id}, which another token has");
        return Err(Error::input(&extended.source.name, problem, "give each token an id of its own"));
    }
    let end = |ids: &HashMap<String, u32>| ids.values().max().map_or(0, |id| u64::from(*id) + 1);
    Ok(Added { new: list(own, &new)?, old_tokens: old.len() as u64, old_ids: end(&old), ids: end(&all) })
}

/// The text of a token: printable ASCII is spelled as it is in every alphabet of tokens.
fn text(tokenizer: &Tokenizer, id: u32, spelled: &str) -> Result<String> {
    if spelled.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(spelled.to_owned());
    }
    tokenizer.decode(&[id])
}
