//! The folder of an extended tokenizer, and what lies beside its base: configurations, and the model.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::checkpoint::{GENERATION_CONFIG, ModelFolder, TOKENIZER_CONFIG, configured_rows};
use crate::design::extension::config::tokenizer_config;
use crate::design::extension::new_tokens::NewTokens;
use crate::design::rows::initial::{Rows, belongs, rows};
use crate::design::rows::weights::{Model, config};
use crate::io::OutputSet;
use crate::tokenizer::{Tokenizer, config_beside};

/// Files of a base's folder that hold for the extension as they are, since old tokens keep their ids. Not `vocab.json`
/// and `merges.txt`, which lack the new tokens; nor `config.json`, whose `vocab_size` goes with the model's weights.
const KEPT: [&str; 5] = [
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    GENERATION_CONFIG,
];

const TOKENIZER: &str = "tokenizer.json";
const NEW_TOKENS: &str = "new_tokens.json";
const REPORT: &str = "report.json";
const CARD: &str = "MODEL_CARD.md";
const ROWS: &str = "embedding_rows.safetensors";
const PAGE: &str = "report.html";

/// Every file that a folder may get, but for [`KEPT`].
pub(super) const WRITTEN: [&str; 7] = [TOKENIZER, NEW_TOKENS, REPORT, CARD, ROWS, PAGE, TOKENIZER_CONFIG];

/// What a base has beside its `tokenizer.json`.
#[derive(Default)]
pub(super) struct Beside {
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
    /// What lies in the folder of `base`, and the model given, which must have a row for each of the base's ids.
    pub(super) fn of(base: &Path, tokenizer: &Tokenizer, model: Option<&Path>) -> anyhow::Result<Self> {
        let mut beside = match Tokenizer::embedded_by_name(base) {
            Some(_) => Beside::default(),
            None => Self::in_folder(&ModelFolder::around(base))?,
        };
        beside.config = config_beside(base)?;
        beside.model = model.map(Model::open).transpose()?;
        if let Some(model) = &beside.model {
            belongs(model, tokenizer)?;
        }
        Ok(beside)
    }

    /// No base: only a configuration.
    pub(super) fn configured(config: Value) -> Self {
        Beside { config: Some(config), ..Beside::default() }
    }

    fn in_folder(folder: &ModelFolder) -> anyhow::Result<Self> {
        let configured_rows = config(folder)?.as_ref().and_then(configured_rows);
        let mut beside = Beside { configured_rows, ..Beside::default() };
        for name in KEPT {
            beside.kept.extend(folder.bytes(name)?.map(|bytes| (name, bytes)));
        }
        Ok(beside)
    }

    /// Rows of the model's embedding, if they are known.
    pub(super) fn model_rows(&self) -> Option<u64> {
        self.model.as_ref().map(|model| model.embedding.rows).or(self.configured_rows)
    }

    /// Rows to begin with for new tokens, if there is a model to make them from.
    pub(super) fn rows(&self, base: &Tokenizer, new: &NewTokens) -> anyhow::Result<Option<Rows>> {
        Ok(self.model.as_ref().map(|model| rows(model, base, new)).transpose()?)
    }
}

/// What goes into the folder beside what [`Beside`] hands on.
pub(super) struct Made<'m, R> {
    /// `tokenizer.json`.
    pub tokenizer_json: &'m [u8],
    /// `new_tokens.json`.
    pub new_tokens: &'m NewTokens,
    /// `report.json`.
    pub report: &'m R,
    /// `MODEL_CARD.md`.
    pub card: String,
    /// `report.html`.
    pub page: Option<String>,
    /// `embedding_rows.safetensors`.
    pub rows: Option<&'m Rows>,
}

/// Writes the folder; the tokenizer last, so that it stands for the whole.
pub(super) fn write_folder(
    folder: &Path,
    made: &Made<'_, impl Serialize>,
    beside: &Beside,
) -> anyhow::Result<()> {
    let mut files = OutputSet::new();
    files.folder(folder)?;
    let mut write = |name: &str, bytes: &[u8]| files.put(&folder.join(name), bytes);
    let lines = |json: String| (json + "\n").into_bytes();
    for (name, bytes) in &beside.kept {
        write(name, bytes)?;
    }
    let rows = made.rows.map(|rows| &*rows.safetensors);
    let page = made.page.as_ref().map(String::as_bytes);
    let optional = [(ROWS, rows), (PAGE, page)];
    for (name, bytes) in optional.iter().filter_map(|(name, bytes)| Some((name, (*bytes)?))) {
        write(name, bytes)?;
    }
    write(NEW_TOKENS, &lines(serde_json::to_string_pretty(made.new_tokens)?))?;
    write(REPORT, &lines(serde_json::to_string_pretty(made.report)?))?;
    write(CARD, made.card.as_bytes())?;
    let config = tokenizer_config(beside.config.as_ref());
    write(TOKENIZER_CONFIG, &lines(serde_json::to_string_pretty(&config)?))?;
    write(TOKENIZER, made.tokenizer_json)?;
    // What another run left does not belong to this tokenizer.
    optional
        .iter()
        .filter(|(_, bytes)| bytes.is_none())
        .for_each(|(name, _)| files.remove(&folder.join(name)));
    Ok(files.commit()?)
}
