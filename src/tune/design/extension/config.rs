//! The configurations that `transformers` expects next to a `tokenizer.json`.

use serde_json::{Value, json};

use drift_core::Tokenizer;
use drift_core::tokenizer::ADDED_TOKENS_DECODER;

/// The files next to a tokenizer that are valid for its extension without changes, since old tokens keep their ids. `vocab.json` and
/// `merges.txt` are not among them, since they lack the new tokens; nor is `added_tokens.json`, since its tokens are in the
/// `tokenizer.json` of the extension.
pub(in crate::design) const UNCHANGED: [&str; 3] =
    ["special_tokens_map.json", "chat_template.jinja", "chat_template.json"];

/// Returns the settings of a tokenizer with the ids that its added tokens really have. Files may state others, which `tokenizers`
/// ignores, but a file that is written must agree with the `tokenizer.json` beside it.
pub fn with_real_ids(mut settings: Value, tokenizer: &Tokenizer) -> Value {
    if let Some(Value::Object(listed)) = settings.get_mut(ADDED_TOKENS_DECODER) {
        let real = |token: &Value| tokenizer.inner().token_to_id(token["content"].as_str()?);
        let entries = std::mem::take(listed).into_iter();
        listed.extend(entries.map(|(id, token)| (real(&token).map_or(id, |real| real.to_string()), token)));
    }
    settings
}

/// Returns the configuration with which `transformers` uses `tokenizer.json` unchanged. Some of its tokenizer classes would build their
/// own pre-tokenizer instead.
pub fn tokenizer_config(base: Option<&Value>) -> Value {
    let mut config = match base {
        Some(Value::Object(config)) => Value::Object(config.clone()),
        // Without a base there is no configuration to keep. The clean-up of spaces would rewrite text around punctuation.
        _ => json!({ "clean_up_tokenization_spaces": false }),
    };
    config["tokenizer_class"] = "PreTrainedTokenizerFast".into();
    config
}
