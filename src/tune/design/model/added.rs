//! Determines which tokens an extended tokenizer has in addition to the model's own.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::companions::NEW_TOKENS;
use crate::design::SchemeKind;
use crate::design::commands::extension;
use crate::design::extension::new_tokens::{NewTokens, list};
use crate::design::train::possible;
use drift_core::checkpoint::ModelFolder;
use drift_core::{Encoding, Error, Result, Tokenizer};

/// The new tokens, and the numbers of ids.
pub(super) struct AddedTokens {
    /// The new tokens, with the ids to which the model's own tokenizer encodes their texts.
    pub new: NewTokens,
    /// The number of tokens of the model's own tokenizer.
    pub old_tokens: u64,
    /// The largest id of the model's own tokenizer plus one.
    pub old_ids: u64,
    /// The largest id of the extended tokenizer plus one, which is the least number of rows for its tables.
    pub ids: u64,
}

/// Compares `extended` with `own`. `replaced` contains the old tokens that the extension states it replaced, by the id that new
/// tokens took. `encoding` is the one for which the advice extends `own`.
///
/// # Errors
/// If it is not an extension: every other token of `own` must keep its id.
pub(super) fn added(
    own: &Tokenizer,
    extended: &Tokenizer,
    replaced: &BTreeMap<u32, String>,
    encoding: Encoding,
) -> Result<AddedTokens> {
    let [old, all] = [own, extended].map(Tokenizer::vocabulary);
    let mut differences: Vec<(u32, &String, String)> = Vec::new();
    for (text, id) in &old {
        let difference = match all.get(text) {
            None if replaced.get(id).is_some_and(|gone| gone == text) => continue,
            None => "which it does not have".to_owned(),
            Some(other) if other != id => format!("which has id {other}, not {id}"),
            Some(_) if own.is_added(text) && !extended.is_added(text) => "which is no added token".to_owned(),
            Some(_) => continue,
        };
        differences.push((*id, text, difference));
    }
    // Sorted by id, so that the first one named is the same in every run.
    differences.sort();
    if let Some((_, text, why)) = differences.first() {
        let problem = format!(
            "is not an extension of {}: {} of its {} tokens differ, first {text:?}, {why}",
            own.name,
            differences.len(),
            old.len()
        );
        let kind = SchemeKind::Fused;
        let command = possible(own, kind, encoding).map(|tokens| extension(own, kind, tokens, encoding));
        let how = command.map_or_else(|_| String::new(), |command| format!(": {command}"));
        let remedy = format!("extend the model's own tokenizer{how}");
        return Err(Error::input(&extended.source.name, problem, remedy));
    }
    let mut new: Vec<(u32, String)> = all
        .iter()
        .filter(|(spelled, _)| !old.contains_key(*spelled))
        .map(|(spelled, id)| Ok((*id, text(extended, *id, spelled)?)))
        .collect::<Result<_>>()?;
    new.sort();
    // The ids of removed tokens are free for new ones.
    let taken: HashSet<u32> = old.values().copied().filter(|id| !replaced.contains_key(id)).collect();
    let twice = |pair: &&[(u32, String)]| pair[0].0 == pair[1].0;
    let again =
        new.iter().find(|(id, _)| taken.contains(id)).or(new.windows(2).find(twice).map(|pair| &pair[1]));
    if let Some((id, text)) = again {
        let problem = format!("gives the new token {text:?} the id {id}, which another token has");
        return Err(Error::input(&extended.source.name, problem, "give each token an id of its own"));
    }
    Ok(AddedTokens {
        new: list(own, &new, replaced)?,
        old_tokens: (old.len() - replaced.len()) as u64,
        old_ids: own.rows().into(),
        ids: extended.rows().into(),
    })
}

/// Returns the old tokens whose ids were given to new ones, according to the file of new tokens next to an extended tokenizer.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn replaced(tokenizer: &Path) -> Result<BTreeMap<u32, String>> {
    let folder = ModelFolder::around(tokenizer);
    let Some(bytes) = folder.bytes(NEW_TOKENS)? else { return Ok(BTreeMap::new()) };
    let place = || folder.path().join(NEW_TOKENS).display().to_string();
    let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| Error::input(place(), e, ""))?;
    let tokens = json["new_tokens"].as_array().into_iter().flatten();
    let gone = tokens.filter_map(|token| {
        let id = u32::try_from(token["id"].as_u64()?).ok()?;
        Some((id, token["replaces"].as_str()?.to_owned()))
    });
    Ok(gone.collect())
}

/// Returns the text of a token. Printable ASCII is spelled the same in every token alphabet.
fn text(tokenizer: &Tokenizer, id: u32, spelled: &str) -> Result<String> {
    if spelled.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(spelled.to_owned());
    }
    tokenizer.decode(&[id])
}
