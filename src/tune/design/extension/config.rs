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

/// The classes of transformers (4.57 and 5) that pad on the left unless the configuration says otherwise.
const PAD_LEFT: [&str; 6] = [
    "LlamaTokenizer",
    "CodeLlamaTokenizer",
    "GemmaTokenizer",
    "CohereTokenizer",
    "Siglip2Tokenizer",
    "XLNetTokenizer",
];

/// Returns whether a tokenizer with this configuration pads on the left because of its class alone.
pub fn pads_left_by_class(config: &Value) -> bool {
    let class = config["tokenizer_class"].as_str().unwrap_or_default();
    config["padding_side"].is_null() && PAD_LEFT.contains(&class.trim_end_matches("Fast"))
}

/// Returns the configuration with which `transformers` uses `tokenizer.json` unchanged. Some of its tokenizer classes would build their
/// own pre-tokenizer instead. What the base's class has by default is written down, since it goes with the class.
pub fn tokenizer_config(base: Option<&Value>) -> Value {
    let mut config = match base {
        Some(Value::Object(config)) => Value::Object(config.clone()),
        // Without a base there is no configuration to keep. The clean-up of spaces would rewrite text around punctuation.
        _ => json!({ "clean_up_tokenization_spaces": false }),
    };
    if pads_left_by_class(&config) {
        config["padding_side"] = "left".into();
    }
    if config["model_input_names"].is_null() {
        // The class of transformers 4 would also give types of tokens, which `generate` of a decoder refuses.
        config["model_input_names"] = json!(["input_ids", "attention_mask"]);
    }
    config["tokenizer_class"] = "PreTrainedTokenizerFast".into();
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_a_class_stay_without_it() {
        let made = |config: Value| {
            let made = tokenizer_config(Some(&config));
            (made["padding_side"].clone(), made["model_input_names"].clone())
        };
        let plain = json!(["input_ids", "attention_mask"]);
        for class in ["LlamaTokenizer", "LlamaTokenizerFast", "GemmaTokenizer"] {
            assert_eq!(made(json!({ "tokenizer_class": class })), ("left".into(), plain.clone()));
        }
        let right = json!({ "tokenizer_class": "LlamaTokenizer", "padding_side": "right" });
        assert_eq!(made(right).0, "right");
        let names = json!({ "tokenizer_class": "Qwen2Tokenizer", "model_input_names": ["input_ids"] });
        assert_eq!(made(names), (Value::Null, json!(["input_ids"])));
    }
}
