//! The special tokens that the settings of a tokenizer name, in the forms of transformers.

use serde_json::{Map, Value};
use tokenizers::AddedToken;

/// The fields of named special tokens, in the order in which transformers adds them.
const NAMED: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// The fields that list further special tokens; the second one is that of transformers 4.
const EXTRA: [&str; 2] = ["extra_special_tokens", "additional_special_tokens"];

/// The mark of a token with flags among the settings.
const TYPE: &str = "__type";

/// The special tokens of a tokenizer's settings.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SpecialTokens {
    /// Those with a field of their own.
    pub(super) named: Vec<AddedToken>,
    /// The others.
    pub(super) extra: Vec<AddedToken>,
}

impl SpecialTokens {
    /// Returns the special tokens of `settings`.
    ///
    /// # Errors
    /// A problem, if a field that transformers reads as tokens has none.
    pub(super) fn of(settings: &Map<String, Value>) -> Result<Self, String> {
        let mut tokens = SpecialTokens::default();
        for name in NAMED {
            tokens.named.extend(named(settings, name)?);
        }
        // Tokens of a model's own, such as `image_token`. Those with flags come first in transformers.
        let own = settings.iter().filter(|(name, _)| name.ends_with("_token") && !NAMED.contains(&&***name));
        let (flagged, plain): (Vec<_>, Vec<_>) = own.partition(|(_, value)| value.is_object());
        tokens.named.extend(flagged.into_iter().chain(plain).filter_map(|(_, value)| added_token(value)));
        for name in EXTRA {
            match settings.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::Object(own)) => {
                    for (own, value) in own {
                        let token = added_token(value).ok_or_else(|| no_token(&format!("{name}.{own}")))?;
                        tokens.named.push(token);
                    }
                }
                Some(Value::Array(list)) => {
                    let list = list.iter().map(added_token);
                    tokens.extra.extend(list.collect::<Option<Vec<_>>>().ok_or_else(|| no_token(name))?);
                }
                Some(_) => return Err(no_token(name)),
            }
        }
        Ok(tokens)
    }

    /// Overrides the fields of `settings` by those of a `special_tokens_map.json`, whose tokens are all special.
    pub(super) fn merge(settings: &mut Map<String, Value>, special_tokens_map: &Map<String, Value>) {
        for (name, value) in special_tokens_map {
            let value = match (value, settings.get_mut(name)) {
                (Value::Array(list), Some(Value::Array(known))) if EXTRA.contains(&&**name) => {
                    for token in list.iter().map(special) {
                        if !known.iter().any(|known| content(known) == content(&token)) {
                            known.push(token);
                        }
                    }
                    continue;
                }
                (Value::Array(list), _) => Value::Array(list.iter().map(special).collect()),
                (value, _) => special(value),
            };
            settings.insert(name.clone(), value);
        }
    }

    /// Returns whether the settings have a list of further special tokens, even an empty one.
    pub(super) fn has_lists(settings: &Map<String, Value>) -> bool {
        EXTRA.iter().any(|name| settings.contains_key(*name))
    }

    /// Returns all of them, named ones first.
    pub(super) fn all(&self) -> impl Iterator<Item = &AddedToken> {
        self.named.iter().chain(&self.extra)
    }
}

/// Returns the token of a field; `None` if it is absent or null.
fn named(settings: &Map<String, Value>, name: &str) -> Result<Option<AddedToken>, String> {
    let value = settings.get(name).filter(|value| !value.is_null());
    value.map(|value| added_token(value).ok_or_else(|| no_token(name))).transpose()
}

fn no_token(field: &str) -> String {
    format!("its {field} is neither a text nor a token with a content")
}

/// Returns the text of a token in the settings.
pub(super) fn content(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}

/// Returns a token of the settings: a text, or an object with a content and flags. A text is special.
pub(super) fn added_token(value: &Value) -> Option<AddedToken> {
    let content = content(value)?;
    if value.is_string() {
        return Some(AddedToken::from(content, true));
    }
    let flag = |name: &str, absent: bool| value.get(name).and_then(Value::as_bool).unwrap_or(absent);
    let special = flag("special", false);
    let token = AddedToken::from(content, special).normalized(flag("normalized", !special));
    Some(
        token
            .single_word(flag("single_word", false))
            .lstrip(flag("lstrip", false))
            .rstrip(flag("rstrip", false)),
    )
}

/// Returns a token of a `special_tokens_map.json` in the form in which `tokenizer_config.json` has it.
fn special(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(token) = value.as_object_mut().filter(|token| token.contains_key("content")) {
        token.insert("special".to_owned(), true.into());
        token.insert(TYPE.to_owned(), "AddedToken".into());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(settings: Value) -> SpecialTokens {
        SpecialTokens::of(settings.as_object().unwrap()).unwrap()
    }

    #[test]
    fn tokens_have_the_order_and_flags_of_transformers() {
        let tokens = of(json!({
            "extra_special_tokens": {"boi_token": "<boi>"},
            "additional_special_tokens": ["[A]", {"__type": "AddedToken", "content": "[B]", "lstrip": true}],
            "image_token": "<image>",
            "pad_token": null,
            "mask_token": {"content": "<mask>", "lstrip": true, "special": true},
            "eos_token": "</s>",
            "tokenizer_class": "PreTrainedTokenizerFast",
        }));
        let special = |content: &str| AddedToken::from(content, true);
        assert_eq!(
            tokens.named,
            [special("</s>"), special("<mask>").lstrip(true), special("<image>"), special("<boi>")]
        );
        assert_eq!(tokens.extra, [special("[A]"), AddedToken::from("[B]", false).lstrip(true)]);
        for wrong in [json!({"eos_token": 1}), json!({"additional_special_tokens": "[A]"})] {
            assert!(SpecialTokens::of(wrong.as_object().unwrap()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn maps_override_settings() {
        let mut settings = json!({"eos_token": "a", "additional_special_tokens": ["[A]"]});
        let map = json!({
            "eos_token": {"content": "b", "rstrip": true, "special": false},
            "bos_token": "c",
            "additional_special_tokens": ["[A]", {"content": "[B]"}],
        });
        SpecialTokens::merge(settings.as_object_mut().unwrap(), map.as_object().unwrap());
        let special = |content: &str| AddedToken::from(content, true);
        let tokens = of(settings);
        assert_eq!(tokens.named, [special("c"), special("b").rstrip(true)]);
        assert_eq!(tokens.extra, [special("[A]"), special("[B]")]);
    }
}
