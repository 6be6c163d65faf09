//! The configurations that `transformers` expects beside a `tokenizer.json`.

use serde_json::{Value, json};

/// The configuration that makes `transformers` read `tokenizer.json` as it is: some of its classes build a
/// pre-tokenizer of their own instead.
pub fn tokenizer_config(base: Option<&Value>) -> Value {
    let mut config = match base {
        Some(Value::Object(config)) => Value::Object(config.clone()),
        // Without a base there is no configuration to keep; the clean-up of spaces would rewrite text around punctuation.
        _ => json!({ "clean_up_tokenization_spaces": false }),
    };
    config["tokenizer_class"] = "PreTrainedTokenizerFast".into();
    config
}
