//! The configurations of an extended model: only the statements about its size change.

use serde_json::{Value, json};

use crate::design::extension::config::{pads_left_by_class, tokenizer_config};
use drift_core::checkpoint::configured_rows;

/// `config.json` for an embedding with `rows` rows.
pub(super) fn config(config: &Value, rows: u64) -> Value {
    let mut config = config.clone();
    // Models with several parts store the size for the text part separately; some state it twice.
    if config["text_config"]["vocab_size"].is_u64() {
        config["text_config"]["vocab_size"] = rows.into();
    }
    if config["embedding_size"].is_u64() {
        config["embedding_size"] = rows.into();
    }
    // Only existing keys are changed. A configuration that states the size nowhere gets the key `vocab_size`.
    if config["vocab_size"].is_u64() || configured_rows(&config).is_none() {
        config["vocab_size"] = rows.into();
    }
    config
}

/// Returns the index of shards whose tensors have `bytes` bytes, and `more_numbers` more numbers than before.
pub(super) fn index(index: &Value, bytes: u64, more_numbers: u64) -> Value {
    let mut index = index.clone();
    if !index["metadata"].is_object() {
        index["metadata"] = json!({});
    }
    index["metadata"]["total_size"] = bytes.into();
    if let Some(numbers) = index["metadata"]["total_parameters"].as_u64() {
        index["metadata"]["total_parameters"] = (numbers + more_numbers).into();
    }
    index
}

/// The settings that are the extension's own: they list its tokens.
const OF_EXTENSION: [&str; 3] = ["tokenizer_class", "added_tokens_decoder", "additional_special_tokens"];

/// `tokenizer_config.json`: that of the model, whose template, padding and special tokens may be others than those of the base that was
/// extended, with the extension's tokens.
pub(super) fn tokenizer(extended: Option<&Value>, model: Option<&Value>) -> Value {
    let mut config = tokenizer_config(extended.or(model));
    let own = model.and_then(Value::as_object).into_iter().flatten();
    for (name, value) in own.filter(|(name, value)| !OF_EXTENSION.contains(&&***name) && !value.is_null()) {
        config[name] = value.clone();
    }
    if model.is_some_and(pads_left_by_class) {
        config["padding_side"] = "left".into();
    }
    config
}

/// Returns the recipe of a model trained by drift, with the name of the new tokenizer.
pub(super) fn recipe(recipe: &Value, tokenizer: &str) -> Value {
    let mut recipe = recipe.clone();
    if let Some(name) = recipe.pointer_mut("/recipe/tokenizer").filter(|name| name.is_string()) {
        *name = tokenizer.into();
    }
    recipe
}

/// Returns a JSON document as the contents of a file.
pub(super) fn document(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sizes_change_and_keys_keep_their_order() {
        let text = r#"{"z":1e-06,"text_config":{"b":1,"vocab_size":7,"a":2},"vocab_size":7,"c":[1.0]}"#;
        let before: Value = serde_json::from_str(text).unwrap();
        let after = config(&before, 9).to_string();
        assert_eq!(after.replace("1e-6", "1e-06"), text.replace('7', "9"));
        assert_eq!(
            config(&json!({"text_config": {"vocab_size": 7}}), 9),
            json!({"text_config": {"vocab_size": 9}})
        );
        assert_eq!(config(&json!({"a": 1}), 9), json!({"a": 1, "vocab_size": 9}));
        let shards = json!({"weight_map": {"b": "1", "a": "2"}});
        assert_eq!(
            index(&shards, 5, 3).to_string(),
            r#"{"weight_map":{"b":"1","a":"2"},"metadata":{"total_size":5}}"#
        );
        let shards = json!({"metadata": {"total_parameters": 4, "total_size": 1}});
        assert_eq!(index(&shards, 5, 3)["metadata"], json!({"total_parameters": 7, "total_size": 5}));
    }

    #[test]
    fn special_tokens_of_the_model_are_kept() {
        let model = json!({"eos_token": {"content": "</s>"}, "pad_token": "<pad>"});
        let config = tokenizer(Some(&json!({"pad_token": "<pad>", "eos_token": null})), Some(&model));
        assert_eq!((&config["eos_token"], &config["pad_token"]), (&model["eos_token"], &json!("<pad>")));
        let base = json!({"chat_template": "base", "padding_side": "right", "tokenizer_class": "X", "bos_token": "<s>"});
        let tuned = json!({"chat_template": "own", "padding_side": "left", "tokenizer_class": "Y", "bos_token": null});
        let expected = json!({
            "chat_template": "own", "padding_side": "left", "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>",
            "model_input_names": ["input_ids", "attention_mask"],
        });
        assert_eq!(tokenizer(Some(&base), Some(&tuned)), expected);
        assert_eq!(tokenizer(None, Some(&model))["eos_token"], model["eos_token"]);
    }
}
