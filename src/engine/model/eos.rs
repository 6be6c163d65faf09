//! The tokens that end a text.

use std::path::Path;

use super::config::Config;
use drift_core::checkpoint::ModelFolder;
use drift_core::tokenizer::ends_of_text;
use drift_core::{Error, Result, Tokenizer};

/// Returns the ids of the tokens that end a text of the checkpoint in `dir`, as found by [`ends_of_text`]; at least one.
///
/// # Errors
/// If [`ends_of_text`] fails or finds no id.
pub fn end_of_text(dir: &Path, config: &Config, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
    let ids = ends_of_text(&ModelFolder::new(dir), Some(&config.eos_token_ids), tokenizer)?;
    if ids.is_empty() {
        let remedy = "set eos_token_id in generation_config.json, or eos_token in tokenizer_config.json";
        return Err(Error::input(dir.display(), "no file says which token ends a text", remedy));
    }
    Ok(ids)
}
