//! Tokens that begin and end texts, and the `tokenizer_config.json` that names them.

use std::path::Path;

use serde_json::Value;

use super::Tokenizer;
use crate::error::{Error, Result};
use crate::io::read_to_limit;

/// A tokenizer_config.json is at most this large.
const MAX_CONFIG_BYTES: u64 = 1 << 24;

/// Names that tokenizers give to the end of a text, where no config names one: the first that is a token.
pub const USUAL_ENDS: [&str; 5] = ["<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>"];

/// The tokenizer_config.json beside a tokenizer that is a file, a model folder, or the name of an embedded one; `None`
/// if there is none.
///
/// # Errors
/// If it cannot be read or is not JSON.
pub fn config_beside(tokenizer: &Path) -> Result<Option<Value>> {
    let (place, bytes) = if let Some(embedded) = Tokenizer::embedded_by_name(tokenizer) {
        (tokenizer.to_owned(), embedded.config.as_bytes().to_vec())
    } else {
        let folder = if tokenizer.is_dir() { Some(tokenizer) } else { tokenizer.parent() };
        let file = folder.map(|folder| folder.join("tokenizer_config.json")).filter(|file| file.is_file());
        let Some(file) = file else { return Ok(None) };
        let bytes = read_to_limit(&file, MAX_CONFIG_BYTES)?;
        (file, bytes)
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|e| {
        let problem = format!("is not JSON: {e}");
        Error::input(place.display(), problem, "mend it, or give the tokenizer.json alone")
    })
}

/// A token by name and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its text.
    pub text: String,
    /// Its id.
    pub id: u32,
}

impl Tokenizer {
    /// The end of text: `eos_token` of the config, else an added token of a usual name.
    ///
    /// # Errors
    /// If there is none, or the config names one that is no token.
    pub fn end_of_text(&self, config: Option<&Value>) -> Result<Named> {
        let named = |text: &str| Some(Named { text: text.to_owned(), id: self.inner().token_to_id(text)? });
        if let Some(text) = config.and_then(|config| special(config, "eos_token")) {
            return named(text).ok_or_else(|| {
                let problem = format!("eos_token {text} of its tokenizer_config.json is no token");
                Error::input(&self.name, problem, "name one of the vocabulary")
            });
        }
        USUAL_ENDS.into_iter().find_map(named).ok_or_else(|| {
            let remedy = "put a tokenizer_config.json with an eos_token beside the tokenizer.json";
            Error::input(&self.name, "has no end of text (EOS)", remedy)
        })
    }

    /// The beginning of text that the config names, if it is a token.
    pub fn beginning_of_text(&self, config: Option<&Value>) -> Option<Named> {
        let text = special(config?, "bos_token")?;
        Some(Named { text: text.to_owned(), id: self.inner().token_to_id(text)? })
    }
}

/// A special token of a config: a string, or an object with its content.
fn special<'c>(config: &'c Value, name: &str) -> Option<&'c str> {
    let token = config.get(name)?;
    token.as_str().or_else(|| token.get("content")?.as_str())
}
