//! Taking an extension out of a `tokenizer.json` again, so that the same request can be made of it twice.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::bound::occurs_in_a_block;
use super::cut::CUT_MARK;
use super::extend::{added_tokens, regex, splits};
use super::grammar::{Decimals, Grammar};
use super::scheme::Range;
use crate::error::{Error, Result};

/// A base as it was before drift extended it; none if it was not. Tokens at the end of the vocabulary that can be parts of
/// blocks are taken to be new: whether they are shows when the result is extended again.
pub fn undo(extended: &Value) -> Option<Value> {
    let list = splits(&extended["pre_tokenizer"]);
    let cut = list.iter().position(|split| regex(split).is_some_and(|regex| regex.starts_with(CUT_MARK)))?;
    let block = regex(list.first()?)?;
    let guard = format!("\\A{block}\\z|");
    let mut own: Vec<Value> = Vec::new();
    for (at, split) in list.iter().enumerate().filter(|(at, _)| *at != 0 && *at != cut) {
        let mut split = (*split).clone();
        if at < cut {
            split["pattern"] = json!({ "Regex": regex(&split)?.strip_prefix(&guard)? });
        }
        own.push(split);
    }
    let mut json = extended.clone();
    json["pre_tokenizer"]["pretokenizers"] = own.into();
    let added: HashSet<String> = added_tokens(extended).into_iter().map(|(_, content)| content).collect();
    let any = Grammar { range: Range::new(100).ok()?, decimals: Decimals::From(0) };
    let vocabulary = json["model"]["vocab"].as_object_mut()?;
    let mut ids: Vec<(u64, String)> =
        vocabulary.iter().filter_map(|(text, id)| Some((id.as_u64()?, text.clone()))).collect();
    ids.sort_unstable();
    while let Some((_, text)) =
        ids.pop().filter(|(_, text)| !added.contains(text) && occurs_in_a_block(any, text))
    {
        vocabulary.shift_remove(&text);
    }
    Some(json)
}

/// Refuses a base that drift extended, for ways that begin with one it did not.
///
/// # Errors
/// If it was extended.
pub(super) fn never_extended(base: &Value, place: &str) -> Result<()> {
    if undo(base).is_none() { Ok(()) } else { Err(another_way(place)) }
}

/// The base is the result of another plan.
pub(super) fn another_way(place: &str) -> Error {
    let problem = "was extended by drift before, in another way";
    let remedy = "give the tokenizer that it was made from, or the options that it was made with";
    Error::input(place, problem, remedy)
}
