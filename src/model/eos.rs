//! Which tokens end a text.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::config::{Config, Ids};
use crate::error::{Error, Result};
use crate::io;
use crate::tokenizer::{Tokenizer, USUAL_ENDS};

/// No real file of settings is larger.
const LIMIT: u64 = 64 << 20;

/// The one field of `generation_config.json` that counts here.
#[derive(Deserialize)]
struct GenerationConfig {
    eos_token_id: Option<Ids>,
}

/// The one field of `tokenizer_config.json` that counts here.
#[derive(Deserialize)]
struct TokenizerConfig {
    eos_token: Option<Value>,
}

/// The ids that end a text of the checkpoint in `dir`: by `generation_config.json`, else `config.json`, else
/// `tokenizer_config.json`, else a token like `<|endoftext|>`.
///
/// # Errors
/// If none says, or one says an id that the tokenizer does not have.
pub fn end_of_text(dir: &Path, config: &Config, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
    let vocabulary = tokenizer.vocabulary();
    let generation: Option<GenerationConfig> = read(&dir.join("generation_config.json"))?;
    let settings: Option<TokenizerConfig> = read(&dir.join("tokenizer_config.json"))?;
    let mut ids: Vec<u32> = generation.and_then(|file| file.eos_token_id).map(Vec::from).unwrap_or_default();
    if ids.is_empty() {
        ids.clone_from(&config.eos_token_ids);
    }
    if ids.is_empty() {
        let name = settings.and_then(|file| name_of(file.eos_token?));
        let names = name.iter().map(String::as_str).chain(USUAL_ENDS);
        ids = names.filter_map(|name| vocabulary.get(name).copied()).take(1).collect();
    }
    if ids.is_empty() {
        let remedy = "set eos_token_id in generation_config.json, or eos_token in tokenizer_config.json";
        return Err(Error::input(dir.display(), "nothing says which token ends a text", remedy));
    }
    if let Some(id) = ids.iter().find(|id| !vocabulary.values().any(|known| known == *id)) {
        let problem = format!("eos_token_id {id} is no token of {}", tokenizer.source.name);
        return Err(Error::input(dir.display(), problem, "give the tokenizer of this model"));
    }
    Ok(ids)
}

/// A token as a string, or as an added token.
fn name_of(token: Value) -> Option<String> {
    match token {
        Value::String(name) => Some(name),
        Value::Object(fields) => fields.get("content")?.as_str().map(str::to_owned),
        _ => None,
    }
}

/// A file of settings, if it is there.
fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = io::read_to_limit(path, LIMIT)?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|e| Error::input(path.display(), e, "repair or remove it"))
}
