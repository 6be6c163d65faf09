//! Which tokens end a text.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::config::{Config, Ids};
use crate::checkpoint::{GENERATION_CONFIG, ModelFolder, TOKENIZER_CONFIG};
use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

/// The one field of `generation_config.json` that counts here.
#[derive(Deserialize)]
struct GenerationConfig {
    eos_token_id: Option<Ids>,
}

/// The ids that end a text of the checkpoint in `dir`: by `generation_config.json`, else `config.json`, else
/// `tokenizer_config.json`, else a token like `<|endoftext|>`.
///
/// # Errors
/// If none says, or one says an id that the tokenizer does not have.
pub fn end_of_text(dir: &Path, config: &Config, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
    let folder = ModelFolder::new(dir);
    let generation: Option<GenerationConfig> = settings(&folder, GENERATION_CONFIG)?;
    let named: Option<Value> = settings(&folder, TOKENIZER_CONFIG)?;
    let mut ids: Vec<u32> = generation.and_then(|file| file.eos_token_id).map(Vec::from).unwrap_or_default();
    if ids.is_empty() {
        ids.clone_from(&config.eos_token_ids);
    }
    if ids.is_empty() {
        ids.extend(tokenizer.likely_end(named.as_ref()).map(|end| end.id));
    }
    if ids.is_empty() {
        let remedy = "set eos_token_id in generation_config.json, or eos_token in tokenizer_config.json";
        return Err(Error::input(dir.display(), "nothing says which token ends a text", remedy));
    }
    let vocabulary = tokenizer.vocabulary();
    if let Some(id) = ids.iter().find(|id| !vocabulary.values().any(|known| known == *id)) {
        let problem = format!("eos_token_id {id} is no token of {}", tokenizer.source.name);
        return Err(Error::input(dir.display(), problem, "give the tokenizer of this model"));
    }
    Ok(ids)
}

/// A file of settings, if it is there.
fn settings<T: DeserializeOwned>(folder: &ModelFolder, name: &str) -> Result<Option<T>> {
    folder.json(name, |e| (e.to_string(), "repair or remove it"))
}
