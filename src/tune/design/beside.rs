//! What lies beside the base of an extended tokenizer: configurations, and the model.

use std::path::Path;

use serde_json::Value;

use super::extension::config::tokenizer_config;
use super::extension::new_tokens::NewTokens;
use super::rows::initial::{Rows, belongs, rows};
use super::rows::weights::{Model, config};
use drift_core::checkpoint::{GENERATION_CONFIG, ModelFolder, configured_rows};
use drift_core::error::Result;
use drift_core::tokenizer::{Tokenizer, config_beside};

/// Files of a base's folder that hold for the extension as they are, since old tokens keep their ids. Not `vocab.json`
/// and `merges.txt`, which lack the new tokens; nor `config.json`, whose `vocab_size` goes with the model's weights.
const KEPT: [&str; 5] = [
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    GENERATION_CONFIG,
];

/// What a base has beside its `tokenizer.json`.
#[derive(Default)]
pub struct Beside {
    /// Its `tokenizer_config.json`.
    config: Option<Value>,
    /// Names and bytes of [`KEPT`].
    kept: Vec<(&'static str, Vec<u8>)>,
    /// Rows of the model's embedding, by `config.json`.
    configured_rows: Option<u64>,
    /// The model to go on training.
    model: Option<Model>,
}

impl Beside {
    /// What lies in the folder of `base`, a path or the name of an embedded tokenizer.
    ///
    /// # Errors
    /// If a configuration cannot be read.
    pub fn read(base: &Path) -> Result<Self> {
        let mut beside = match Tokenizer::embedded_by_name(base) {
            Some(_) => Beside::default(),
            None => Self::in_folder(&ModelFolder::around(base))?,
        };
        beside.config = config_beside(base)?;
        Ok(beside)
    }

    /// This with the model whose rows new ones are made from; it must have a row for each of the base's ids.
    ///
    /// # Errors
    /// If the model cannot be read, or has too few rows.
    pub fn with_model(self, model: &Path, base: &Tokenizer) -> Result<Self> {
        let model = Model::open(model)?;
        belongs(&model, base)?;
        Ok(Beside { model: Some(model), ..self })
    }

    /// What lies beside a tokenizer made from nothing: its `tokenizer_config.json` alone.
    pub fn configured(config: Value) -> Self {
        Beside { config: Some(config), ..Beside::default() }
    }

    fn in_folder(folder: &ModelFolder) -> Result<Self> {
        let configured_rows = config(folder)?.as_ref().and_then(configured_rows);
        let mut beside = Beside { configured_rows, ..Beside::default() };
        for name in KEPT {
            beside.kept.extend(folder.bytes(name)?.map(|bytes| (name, bytes)));
        }
        Ok(beside)
    }

    /// Rows of the model's embedding, if they are known.
    pub fn model_rows(&self) -> Option<u64> {
        // The weights are the fact; a configuration says only how many rows there should be.
        self.model.as_ref().map(|model| model.embedding.rows).or(self.configured_rows)
    }

    /// Rows to begin with for new tokens, if there is a model to make them from.
    ///
    /// # Errors
    /// If the model's rows cannot be read.
    pub fn rows(&self, base: &Tokenizer, new: &NewTokens) -> Result<Option<Rows>> {
        self.model.as_ref().map(|model| rows(model, base, new)).transpose()
    }

    /// The files that hold for the extension as they are, by name.
    pub fn kept(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.kept.iter().map(|(name, bytes)| (*name, &**bytes))
    }

    /// The `tokenizer_config.json` of the extension.
    pub fn tokenizer_config(&self) -> Value {
        tokenizer_config(self.config.as_ref())
    }
}
