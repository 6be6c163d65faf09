//! Reads from and writes to a `tokenizer.json` as JSON.

use serde_json::{Value, json};

use drift_core::{Error, Result, Tokenizer};

/// Returns the ids and contents of added tokens, sorted by id.
pub(in crate::design) fn added_tokens(base: &Value) -> Vec<(u32, String)> {
    let list = base["added_tokens"].as_array().map_or(&[][..], Vec::as_slice);
    let mut added: Vec<(u32, String)> = list
        .iter()
        .filter_map(|token| {
            let id = u32::try_from(token["id"].as_u64()?).ok()?;
            Some((id, token["content"].as_str()?.to_owned()))
        })
        .collect();
    // Sorted, so that anything listed in this order is the same in every run.
    added.sort();
    added
}

/// Returns the type of a model. Old files do not state it; then it follows from the model's fields, as in `tokenizers`.
pub(in crate::design) fn model_kind(json: &Value) -> Option<&str> {
    let model = &json["model"];
    match model["type"].as_str() {
        None if model["merges"].is_array() => Some("BPE"),
        None if model["vocab"].is_array() => Some("Unigram"),
        kind => kind,
    }
}

/// Returns the two tokens that a merge of a BPE model joins, in the formats of older and newer files.
pub(in crate::design) fn merged_pair(merge: &Value) -> Option<[String; 2]> {
    match merge {
        Value::String(pair) => pair.split_once(' ').map(|(a, b)| [a.to_owned(), b.to_owned()]),
        Value::Array(pair) => match &pair[..] {
            [Value::String(a), Value::String(b)] => Some([a.clone(), b.clone()]),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the members of a pre-tokenizer, including those of nested sequences.
pub(in crate::design) fn splits(pre_tokenizer: &Value) -> Vec<&Value> {
    match pre_tokenizer["pretokenizers"].as_array() {
        Some(list) => list.iter().flat_map(splits).collect(),
        None if pre_tokenizer.is_null() => Vec::new(),
        None => vec![pre_tokenizer],
    }
}

/// Returns the expression of a split, if it has one.
pub(in crate::design) fn regex(split: &Value) -> Option<&str> {
    split["pattern"]["Regex"].as_str()
}

/// Returns a split that isolates the matches of an expression.
pub(in crate::design) fn split(pattern: &str) -> Value {
    json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false })
}

/// Returns a document formatted for a file.
pub(in crate::design) fn pretty(json: &Value) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(json).map_err(|e| Error::internal("tokenizer.json", e))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Returns the tokenizer for a JSON document, and the bytes of its file.
pub(in crate::design) fn written(name: &str, json: &Value) -> Result<(Tokenizer, Vec<u8>)> {
    let bytes = pretty(json)?;
    let source = drift_core::io::hash_bytes("tokenizer.json", &bytes);
    Ok((Tokenizer::from_bytes(name, source, &bytes)?, bytes))
}
