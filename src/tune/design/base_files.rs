//! The files next to the base of an extended tokenizer: configurations, and the model.

use std::path::Path;

use serde_json::Value;

use super::extension::config::{UNCHANGED, tokenizer_config, with_real_ids};
use super::extension::new_tokens::NewTokens;
use super::report::vocabulary::VocabularyReport;
use super::rows::initial::{Rows, belongs, rows};
use super::rows::weights::{Model, config};
use drift_core::checkpoint::{GENERATION_CONFIG, ModelFolder, configured_rows};
use drift_core::tokenizer::config_beside;
use drift_core::{Error, Job, Result, Tokenizer};

/// The files of a base in addition to its `tokenizer.json`.
#[derive(Default)]
pub struct BaseFiles {
    /// The settings of the base, as [`config_beside`] reads them.
    config: Option<Value>,
    /// The names and contents of the files that the extension keeps.
    kept: Vec<(&'static str, Vec<u8>)>,
    /// The number of rows of the model's embedding, according to `config.json`.
    configured_rows: Option<u64>,
    /// The model whose training is to be continued.
    model: Option<Model>,
}

impl BaseFiles {
    /// Reads the files in the folder of `base`, which is a path or the name of an embedded tokenizer.
    ///
    /// # Errors
    /// If a configuration cannot be read.
    pub fn read(base: &Path) -> Result<Self> {
        let mut beside = match Tokenizer::embedded_by_name(base) {
            Some(_) => BaseFiles::default(),
            None => Self::in_folder(&ModelFolder::around(base))?,
        };
        beside.config = config_beside(base)?;
        Ok(beside)
    }

    /// These files beside a tokenizer, with the ids of its tokens.
    #[must_use]
    pub fn of(self, tokenizer: &Tokenizer) -> Self {
        BaseFiles { config: self.config.map(|config| with_real_ids(config, tokenizer)), ..self }
    }

    /// Adds the model from whose embedding rows new rows are initialized. It must have a row for each id of the base, and tokens of both
    /// must have the same ids in a tokenizer beside it.
    ///
    /// # Errors
    /// If the model cannot be read, has too few rows, or was trained with another tokenizer.
    pub fn with_model(self, path: &Path, base: &Tokenizer, job: &Job) -> Result<Self> {
        let model = Model::open(path)?;
        belongs(&model, base)?;
        let folder = ModelFolder::around(path);
        if folder.has_tokenizer()
            && let Ok((own, _)) = Tokenizer::load_for(folder.opened(), job)
        {
            has_ids_of(&own, base, path)?;
        }
        Ok(BaseFiles { model: Some(model), ..self })
    }

    /// Returns the files of a tokenizer that is trained from scratch: only its `tokenizer_config.json`.
    pub fn configured(config: Value) -> Self {
        BaseFiles { config: Some(config), ..BaseFiles::default() }
    }

    fn in_folder(folder: &ModelFolder) -> Result<Self> {
        let configured_rows = config(folder)?.as_ref().and_then(configured_rows);
        let mut beside = BaseFiles { configured_rows, ..BaseFiles::default() };
        // Not `config.json`, whose `vocab_size` must match the model's weights.
        for name in BaseFiles::kept_names() {
            beside.kept.extend(folder.bytes(name)?.map(|bytes| (name, bytes)));
        }
        Ok(beside)
    }

    /// Returns the number of rows of the model's embedding, if it is known.
    pub(in crate::design) fn model_rows(&self) -> Option<u64> {
        // The weights are authoritative; a configuration only states how many rows there should be.
        self.model.as_ref().map(|model| model.embedding.rows).or(self.configured_rows)
    }

    /// Returns the initial embedding rows of the new tokens, if there is a model to compute them from.
    ///
    /// # Errors
    /// If the model's rows cannot be read.
    pub(in crate::design) fn new_rows(&self, base: &Tokenizer, new: &NewTokens) -> Result<Option<Rows>> {
        self.model.as_ref().map(|model| rows(model, base, new)).transpose()
    }

    /// As [`BaseFiles::new_rows`]. Adds what is known about the model to the report.
    ///
    /// # Errors
    /// If the model's rows cannot be read.
    pub fn rows(
        &self,
        base: &Tokenizer,
        new: &NewTokens,
        report: &mut VocabularyReport,
    ) -> Result<Option<Rows>> {
        let rows = self.new_rows(base, new)?;
        report.for_model(self.model_rows(), rows.as_ref().map(|rows| rows.report.clone()));
        Ok(rows)
    }

    /// Returns the names that [`BaseFiles::kept`] may have.
    pub fn kept_names() -> impl Iterator<Item = &'static str> {
        UNCHANGED.into_iter().chain([GENERATION_CONFIG])
    }

    /// Returns the files that are copied unchanged for the extension, by name.
    pub fn kept(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.kept.iter().map(|(name, bytes)| (*name, &**bytes))
    }

    /// Returns the `tokenizer_config.json` of the extension.
    pub fn tokenizer_config(&self) -> Value {
        tokenizer_config(self.config.as_ref())
    }
}

/// Refuses the tokenizer of a model at `model`, if a token has another id in it than in the base: its rows are of other tokens.
fn has_ids_of(own: &Tokenizer, base: &Tokenizer, model: &Path) -> Result<()> {
    let ids = base.vocabulary();
    let other = |(text, id): &(String, u32)| ids.get(text).is_some_and(|base| base != id);
    // The first by id, so that every run names the same token.
    let Some((text, id)) = own.vocabulary().into_iter().filter(other).min_by_key(|(_, id)| *id) else {
        return Ok(());
    };
    let problem = format!("its tokenizer gives {text:?} the id {id}, {} the id {}", base.name, ids[&text]);
    Err(Error::input(model.display(), problem, "give the model of the base"))
}
