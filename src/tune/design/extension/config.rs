//! The configurations that `transformers` expects next to a `tokenizer.json`.

use serde_json::{Value, json};

/// The files next to a tokenizer that are valid for its extension without changes, since old tokens keep their ids. `vocab.json` and
/// `merges.txt` are not among them, since they lack the new tokens.
pub(in crate::design) const UNCHANGED: [&str; 4] =
    ["special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json"];

/// The configuration with which `transformers` uses `tokenizer.json` unchanged. Some of its tokenizer classes would build their own
/// pre-tokenizer instead.
pub fn tokenizer_config(base: Option<&Value>) -> Value {
    let mut config = match base {
        Some(Value::Object(config)) => Value::Object(config.clone()),
        // Without a base there is no configuration to keep. The clean-up of spaces would rewrite text around punctuation.
        _ => json!({ "clean_up_tokenization_spaces": false }),
    };
    config["tokenizer_class"] = "PreTrainedTokenizerFast".into();
    config
}
