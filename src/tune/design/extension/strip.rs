//! Removes an extension from a `tokenizer.json`, so that the same request can be repeated on the result.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::guard::GUARD_MARK;
use super::json::{added_tokens, merged_pair, regex, splits};
use crate::design::scheme::blocks::BEHIND_ATOM;
use crate::design::scheme::counting_bound::BlockParts;
use crate::design::scheme::expression::CUT_MARK;
use crate::design::scheme::grammar::Grammar;
use crate::design::scheme::slots::Range;
use drift_core::encoding::Precision;
use drift_core::{Encoding, Error, Result};

/// Returns the base as it was before drift extended it; `None` if it was not extended. Tokens at the end of the vocabulary that can be
/// parts of the encoding's blocks are assumed to be new. Extending the result again shows whether they are.
pub fn strip_extension(extended: &Value, encoding: Encoding) -> Option<Value> {
    let list = splits(&extended["pre_tokenizer"]);
    let begins = |split: &Value, mark: &str| regex(split).is_some_and(|regex| regex.starts_with(mark));
    let cut = list.iter().position(|split| begins(split, CUT_MARK))?;
    // drift's first split with an expression is the one that isolates blocks. The base's splits follow it.
    let isolate = list.iter().position(|split| regex(split).is_some())?;
    let guarded = list.iter().any(|split| begins(split, GUARD_MARK));
    let block = regex(list[isolate])?;
    let alone = format!("\\A{}\\z|", block.strip_prefix(BEHIND_ATOM).unwrap_or(block));
    let mut own: Vec<Value> = Vec::new();
    for (at, split) in list.iter().enumerate() {
        if at == isolate || at == cut || begins(split, GUARD_MARK) {
            continue;
        }
        let mut split = (*split).clone();
        if let Some(regex) = regex(&split).filter(|_| at < cut) {
            // A split without this prefix was not written by drift, so the tokenizer is not an extension made by drift.
            split["pattern"] = json!({ "Regex": regex.strip_prefix(&alone)? });
        }
        own.push(split);
    }
    let mut json = extended.clone();
    json["pre_tokenizer"] = match own.is_empty() {
        true => Value::Null,
        false => json!({ "type": "Sequence", "pretokenizers": own }),
    };
    if guarded {
        // A guard was written because the base did not look pieces up as a whole.
        json["model"]["ignore_merges"] = false.into();
    }
    let kept = kept_tokens(extended);
    // The widest possible grammar, since the file does not state the range and decimals that were chosen.
    let any = match encoding.is_decimal() {
        true => Grammar::stripped(Range::new(100).ok()?, Precision::MOST, 0).ok()?,
        false => Grammar::constant(encoding, Range::new(100).ok()?),
    };
    let parts = BlockParts::of(any);
    let vocabulary = json["model"]["vocab"].as_object_mut()?;
    let mut ids: Vec<(u64, String)> =
        vocabulary.iter().filter_map(|(text, id)| Some((id.as_u64()?, text.clone()))).collect();
    ids.sort_unstable();
    let is_new = |text: &str| text.len() > 1 && !kept.contains(text) && parts.hold(text);
    // From the end, since an extension appends its tokens. The first token that is not part of a block belongs to the base.
    while let Some((_, text)) = ids.pop().filter(|(_, text)| is_new(text)) {
        vocabulary.shift_remove(&text);
    }
    Some(json)
}

/// Added tokens, and tokens made by merges. An extension adds neither.
fn kept_tokens(json: &Value) -> HashSet<String> {
    let merges = json["model"]["merges"].as_array().map_or(&[][..], Vec::as_slice);
    let made = merges.iter().filter_map(|merge| Some(merged_pair(merge)?.concat()));
    added_tokens(json).into_iter().map(|(_, content)| content).chain(made).collect()
}

/// Refuses a base that drift has extended, for methods that need a base without an extension.
///
/// # Errors
/// If the base was extended.
pub(in crate::design) fn never_extended(base: &Value, place: &str) -> Result<()> {
    if strip_extension(base, Encoding::FIXED).is_none() { Ok(()) } else { Err(another_way(place)) }
}

/// Returns the error for a base that is the result of another plan.
pub(in crate::design) fn another_way(place: &str) -> Error {
    let problem = "was already extended by drift, in another way";
    let remedy = "give the tokenizer that it was made from, or the options that it was made with";
    Error::input(place, problem, remedy)
}
