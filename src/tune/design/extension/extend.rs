//! Writes a scheme into a `tokenizer.json`. The base's JSON is edited in four places; everything else stays unchanged.
//!
//! 1. `model.vocab`: new pieces get ids after all others. Added tokens that the model did not list are listed with their existing
//!    ids, because `tokenizers` renumbers unlisted ones from the size of the vocabulary.
//! 2. `model.ignore_merges`: set to true, so that a pre-token that is in the vocabulary becomes one token. If it was false in the
//!    base, either [`super::check`] proves from the whole vocabulary that this changes nothing else, or a split written by
//!    [`super::guard`] ensures it.
//! 3. `pre_tokenizer`: a split before the base's own splits isolates blocks in the range. Each of the base's own splits is changed
//!    to leave an isolated block alone. A split after them cuts blocks into pieces. See [`super::layout`].
//! 4. `model.merges`: unchanged. No merge makes a new token, and none is needed.

use serde_json::{Value, json};

use super::json::{added_tokens, model_kind, regex, split};
use super::layout::BaseLayout;
use crate::design::scheme::cuts::Scheme;
use crate::design::scheme::expression::{CUT_MARK, cut_pattern};
use crate::design::scheme::grammar::Grammar;
use drift_core::text::containment::may_hold;
use drift_core::{Error, Result, Tokenizer};

/// A base with a scheme written into it.
#[derive(Debug, Clone, PartialEq)]
pub struct Extension {
    /// The new `tokenizer.json`.
    pub json: Value,
    /// The new tokens with their ids, in order.
    pub new_tokens: Vec<(u32, String)>,
}

/// The remedies of bases that cannot be extended. The caller, who has the tokenizer, adds what works with it as it is.
pub(in crate::design) const OTHER_BASE: &str = "extend a BPE tokenizer, byte-level or SentencePiece";
/// The remedy if the base itself already writes numbers as tokens.
pub(in crate::design) const AS_IT_IS: &str = "leave it as it is";
/// The remedy if every number would be a token, and there are too many.
pub(in crate::design) const FEWER_NUMBERS: &str =
    "give an encoding with fewer numbers: fewer digits, or a smaller largest one";
/// The remedy if all texts of the base would change.
pub(in crate::design) const WHOLE_NUMBERS: &str =
    "numbers are whole pre-tokens of this base in all texts, which new tokens would change";

/// Writes `scheme` into a base. `new` are the pieces that its vocabulary lacks.
///
/// # Errors
/// If the base is not a BPE model, or has a pre-tokenizer that cannot be kept from cutting blocks.
pub fn extend(base: &Value, place: &str, scheme: &Scheme, new: &[String]) -> Result<Extension> {
    extend_guarded(base, place, scheme, new, &[], None)
}

/// Like [`extend`], but new pieces first take the ids in `ids`, which must be unused. `guard` is the expression that keeps the new
/// pieces out of all other texts; see [`super::guard`].
///
/// # Errors
/// If the base is not a BPE model, or has a pre-tokenizer that cannot be kept from cutting blocks.
pub(crate) fn extend_guarded(
    base: &Value,
    place: &str,
    scheme: &Scheme,
    new: &[String],
    ids: &[u32],
    guard: Option<&str>,
) -> Result<Extension> {
    let mut json = base.clone();
    let added = added_tokens(base);
    if let Some((_, content)) = added.iter().find(|(_, content)| may_touch_a_block(content, scheme.grammar)) {
        let problem = format!("the added token `{content}` can be a part of a block");
        let special = base["added_tokens"].as_array().into_iter().flatten().any(|token| {
            token["special"] == true
                && token["content"].as_str().is_some_and(|own| may_touch_a_block(own, scheme.grammar))
        });
        // If numbers of the encoding are added tokens, the tokenizer already writes slots as tokens.
        let number = scheme.grammar.encoding().number().parse(content.as_bytes(), 0, false).is_ok();
        let (problem, remedy) = match (number, special) {
            (true, true) => (
                format!("{problem}, and flagged special: decoding without special tokens drops coordinates"),
                "add its numbers again without the flag, and leave it as it is then",
            ),
            (true, false) => (format!("has numbers as added tokens already, such as `{content}`"), AS_IT_IS),
            (false, _) => (problem, OTHER_BASE),
        };
        return Err(Error::input(place, problem, remedy));
    }
    let layout = BaseLayout::from_json(base).map_err(|problem| Error::input(place, problem, OTHER_BASE))?;
    let new_tokens = add_tokens(&mut json, place, new, ids)?;
    json["model"]["ignore_merges"] = true.into();
    let patterns = [scheme.grammar.isolating_pattern(), scheme.grammar.block_pattern(), cut_pattern(scheme)];
    json["pre_tokenizer"] = pre_tokenizer(&layout, &patterns, guard);
    Ok(Extension { json, new_tokens })
}

/// Adds new tokens to a BPE model's vocabulary and returns them with their ids: first the ids in `ids`, then ids after all others.
/// Added tokens that the model does not list are listed first, with their existing ids.
///
/// # Errors
/// If the model is not BPE, its tokens mark the beginnings or ends of words, an added token has two ids, or no ids are left.
pub(in crate::design) fn add_tokens(
    json: &mut Value,
    place: &str,
    new: &[String],
    ids: &[u32],
) -> Result<Vec<(u32, String)>> {
    let refuse = |problem: &str| Error::input(place, problem, OTHER_BASE);
    let added = added_tokens(json);
    let kind = model_kind(json).map(str::to_owned);
    if kind.as_deref() == Some("Unigram") {
        return Err(refuse(
            "is a Unigram model, which takes a new token in every text that holds it, so that texts without blocks \
             would change",
        ));
    }
    let model = json["model"].as_object_mut().ok_or_else(|| refuse("has no model"))?;
    if kind.as_deref() != Some("BPE") {
        return Err(refuse("is not a BPE model"));
    }
    // A new token is listed as its plain text. In a vocabulary with such marks, this would be a different token from the one that
    // is looked up.
    for affix in ["continuing_subword_prefix", "end_of_word_suffix"] {
        if model.get(affix).and_then(Value::as_str).is_some_and(|affix| !affix.is_empty()) {
            return Err(refuse("marks the beginnings or ends of words in its tokens"));
        }
    }
    let vocabulary =
        model.get_mut("vocab").and_then(Value::as_object_mut).ok_or_else(|| refuse("has no vocabulary"))?;
    // Listed first, since new ids start after the largest id: `tokenizers` would renumber unlisted tokens.
    for (id, content) in &added {
        let listed = vocabulary.entry(content.as_str()).or_insert(Value::from(*id));
        if listed.as_u64() != Some(u64::from(*id)) {
            return Err(refuse(&format!("gives the added token `{content}` two ids")));
        }
    }
    let last = vocabulary.values().filter_map(Value::as_u64).max().unwrap_or(0);
    let mut new_tokens = Vec::with_capacity(new.len());
    for (id, piece) in ids.iter().map(|id| u64::from(*id)).chain(last + 1..).zip(new) {
        let id = u32::try_from(id).map_err(|_| refuse("has no ids left"))?;
        vocabulary.insert(piece.clone(), id.into());
        new_tokens.push((id, piece.clone()));
    }
    Ok(new_tokens)
}

/// Removes the cut from an extended tokenizer: its blocks stay isolated, but are not cut into pieces.
pub(in crate::design) fn without_cut(mut json: Value) -> Value {
    if let Some(list) = json["pre_tokenizer"]["pretokenizers"].as_array_mut() {
        list.retain(|member| !regex(member).is_some_and(|regex| regex.starts_with(CUT_MARK)));
    }
    json
}

/// Returns a base's JSON with the ids that `tokenizers` gives its added tokens. Added tokens that the model does not list are numbered
/// from the size of its vocabulary, regardless of the ids in the file. For cl100k, which leaves an id out, these ids start one earlier.
pub fn as_read(base: &Tokenizer, mut json: Value) -> Value {
    let ids = base.vocabulary();
    for token in json["added_tokens"].as_array_mut().into_iter().flatten() {
        if let Some(id) = token["content"].as_str().and_then(|content| ids.get(content)) {
            token["id"] = (*id).into();
        }
    }
    json
}

/// Returns whether an added token could take a part of a block, since added tokens are cut out of texts before anything else. Such a
/// token lies inside a block, overlaps its beginning, or overlaps its end. If blocks have no opening character, a block begins after a
/// `]`. A token that no text of a molecule contains (`>>TITLE<<`) cannot.
fn may_touch_a_block(content: &str, grammar: Grammar) -> bool {
    if !may_hold(content, grammar.encoding()) {
        return false;
    }
    let (characters, encoding) = (grammar.characters(), grammar.encoding());
    let own = |text: &str| text.chars().all(|c| characters.contains(c));
    let (open, close) = (encoding.open(), encoding.close());
    let inside = |text: &str| own(text.trim_start_matches(open).trim_end_matches(close));
    let begins = match open {
        // The text before the first number does not belong to the block.
        "" => content.rsplit_once(']').is_some_and(|(_, end)| !end.is_empty() && inside(end)),
        _ => content.rsplit_once(open).is_some_and(|(_, end)| inside(end)),
    };
    let ends = !close.is_empty() && content.split_once(close).is_some_and(|(start, _)| inside(start));
    !content.is_empty() && (inside(content) || begins || ends)
}

/// Combines the base's pre-tokenizers with splits that isolate blocks in texts, know one on its own, and cut it.
pub(in crate::design) fn pre_tokenizer(
    layout: &BaseLayout,
    patterns: &[String; 3],
    guard: Option<&str>,
) -> Value {
    let [isolating, alone, cutting] = patterns;
    let mut list = layout.before.clone();
    // After the pre-tokenizers that mark spaces, and before the base's own splits, which must receive blocks already isolated.
    list.push(split(isolating));
    list.extend(layout.guarded(alone));
    list.extend(guard.map(split));
    list.push(split(cutting));
    list.extend(layout.after.iter().cloned());
    json!({ "type": "Sequence", "pretokenizers": list })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::scheme::grammar::fixed_grammar;
    use crate::design::scheme::slots::Range;

    #[test]
    fn added_tokens_that_touch_blocks_are_seen() {
        let fixed = fixed_grammar(15, 4);
        for content in
            ["<", ">", "1", "-", "0.0", "]<", "<-1", ">[", "5>", "]<1", "<1,2>", "a]<1,2>", "<1,2>["]
        {
            assert!(may_touch_a_block(content, fixed), "{content}");
        }
        // No text of a molecule holds these.
        for content in ["<<", "a<1", "x<1,2>", "<1,2>x", ">>TITLE<<"] {
            assert!(!may_touch_a_block(content, fixed), "{content}");
        }
        for content in ["<think>", "<|im_end|>", "[SMILES]", "<s>", "</think>", "<mask_1>", "x1"] {
            assert!(!may_touch_a_block(content, fixed), "{content}");
        }
        let bins = Grammar::constant("binned-v2:-13,13,0.104".parse().unwrap(), Range::USUAL);
        for content in ["1", "130", ";", "]1", "0;", "12;[C]"] {
            assert!(may_touch_a_block(content, bins), "{content}");
        }
        for content in ["<", ",", "-1", "[SMILES]", "[/CONFORMER]", "<|im_end|>", "x1", "1.5"] {
            assert!(!may_touch_a_block(content, bins), "{content}");
        }
    }
}
