//! Tokens that begin and end texts, and the `tokenizer_config.json` that names them.

use std::path::Path;

use serde_json::Value;

use super::Tokenizer;
use crate::checkpoint::{ModelFolder, TOKENIZER_CONFIG};
use crate::error::{Error, Result};

/// Names that tokenizers give to the end of a text, where no config names one: the first that is a token.
const USUAL_ENDS: [&str; 5] = ["<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>"];

/// The tokenizer_config.json beside a tokenizer that is a file, a model folder, or the name of an embedded one; `None`
/// if there is none.
///
/// # Errors
/// If it cannot be read or is not JSON.
pub fn config_beside(tokenizer: &Path) -> Result<Option<Value>> {
    let refuse =
        |e: serde_json::Error| (format!("is not JSON: {e}"), "mend it, or give the tokenizer.json alone");
    if let Some(embedded) = Tokenizer::embedded_by_name(tokenizer) {
        return serde_json::from_str(embedded.config).map(Some).map_err(|e| {
            let (problem, remedy) = refuse(e);
            Error::input(tokenizer.display(), problem, remedy)
        });
    }
    ModelFolder::around(tokenizer).json(TOKENIZER_CONFIG, refuse)
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
        if let Some(text) = config.and_then(|config| special(config, "eos_token")) {
            return self.named(text).ok_or_else(|| {
                let problem = format!("eos_token {text} of its tokenizer_config.json is no token");
                Error::input(&self.name, problem, "name one of the vocabulary")
            });
        }
        self.usual_end().ok_or_else(|| {
            let remedy = "put a tokenizer_config.json with an eos_token beside the tokenizer.json";
            Error::input(&self.name, "has no end of text (EOS)", remedy)
        })
    }

    /// The end of text that the config names if it is a token, else the first token of a usual name, if there is one.
    pub fn likely_end(&self, config: Option<&Value>) -> Option<Named> {
        let said = config.and_then(|config| special(config, "eos_token"));
        said.and_then(|text| self.named(text)).or_else(|| self.usual_end())
    }

    /// The beginning of text that the config names, if it is a token.
    pub fn beginning_of_text(&self, config: Option<&Value>) -> Option<Named> {
        self.named(special(config?, "bos_token")?)
    }

    fn usual_end(&self) -> Option<Named> {
        USUAL_ENDS.into_iter().find_map(|text| self.named(text))
    }

    fn named(&self, text: &str) -> Option<Named> {
        Some(Named { text: text.to_owned(), id: self.inner().token_to_id(text)? })
    }
}

/// A special token of a config: a string, or an object with its content.
fn special<'c>(config: &'c Value, name: &str) -> Option<&'c str> {
    let token = config.get(name)?;
    token.as_str().or_else(|| token.get("content")?.as_str())
}
