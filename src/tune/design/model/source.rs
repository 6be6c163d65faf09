//! Reads what is needed of the model to extend: its settings, its tables and its files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::layers::Layers;
use crate::design::extension::new_tokens::NewTokens;
use crate::design::rows::weights::{Model, TokenTable, config, is_in_layer};
use drift_core::checkpoint::{
    CONFIG, GENERATION_CONFIG, Header, ModelFolder, TOKENIZER_CONFIG, WEIGHTS, WeightFiles, configured_rows,
};
use drift_core::io::file_name;
use drift_core::tokenizer::config_beside;
use drift_core::{Error, Result};

/// Architectures whose decoder layers all have the same tensors.
const LAYERS_ALIKE: [&str; 4] = ["llama", "mistral", "qwen2", "qwen3"];

/// A weights file.
pub(super) struct Shard {
    /// The path of the file.
    pub path: PathBuf,
    /// The name under which it is written.
    pub name: String,
    /// The parsed header.
    pub header: Header,
}

impl Shard {
    /// Returns the size of its tensors in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.header.tensors.data_len() as u64
    }
}

/// The checked model to extend.
pub(super) struct SourceModel {
    /// The folder of the model.
    pub folder: ModelFolder,
    /// The tables with a row for each token.
    pub tables: Model,
    /// An LM head that is stored although the LM head is tied to the embedding.
    pub redundant_head: Option<TokenTable>,
    /// `config.json`.
    pub config: Value,
    /// `generation_config.json`.
    pub generation: Option<Value>,
    /// The settings of its tokenizer, as [`config_beside`] reads them.
    pub tokenizer_config: Option<Value>,
    /// The weights files.
    pub shards: Vec<Shard>,
    /// The index of the shards, if the weights are sharded.
    pub index: Option<Value>,
}

impl SourceModel {
    /// Reads the settings and headers.
    ///
    /// # Errors
    /// If a file is missing or damaged, or the files are inconsistent.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let tables = Model::open(path)?;
        let folder = ModelFolder::around(path);
        let config = config(&folder)?.ok_or_else(|| {
            let remedy = "give the whole folder of the model";
            Error::input(folder.path().display(), format!("contains no {CONFIG}"), remedy)
        })?;
        let sound = |e: serde_json::Error| (format!("is not JSON: {e}"), "give an intact model folder");
        let generation = folder.json(GENERATION_CONFIG, sound)?;
        let (shards, index) = weights(path, &folder)?;
        let source = SourceModel {
            redundant_head: tables.redundant_head(path)?,
            tokenizer_config: config_beside(folder.path())?,
            folder,
            tables,
            config,
            generation,
            shards,
            index,
        };
        source.check_shape()?;
        source.check_layers()?;
        source.check_tables()?;
        Ok(source)
    }

    /// Checks the embedding against the configuration.
    fn check_shape(&self) -> Result<()> {
        let embedding = &self.tables.embedding;
        let width = ["word_embed_proj_dim", "hidden_size", "d_model", "n_embd"].iter().find_map(|name| {
            self.config[name].as_u64().or_else(|| self.config["text_config"][name].as_u64())
        });
        let pairs = [
            // OLMo 1 states the number of rows separately from the number of tokens.
            (
                "vocab_size",
                self.config["embedding_size"].as_u64().or(configured_rows(&self.config)),
                embedding.rows,
            ),
            ("hidden_size", width, embedding.hidden as u64),
        ];
        for (name, said, is) in pairs {
            if let Some(said) = said.filter(|said| *said != is) {
                let problem = format!("is {is} wide or long, but {name} in {CONFIG} is {said}");
                let remedy = "they belong to two models; give the files of one";
                return Err(Error::input(embedding.place(), problem, remedy));
            }
        }
        Ok(())
    }

    /// Refuses a model in which another tensor has a row for each token: that part of the model would not grow with the rest.
    fn check_tables(&self) -> Result<()> {
        const NAMES: [&str; 6] = ["embed", "head", "output", "vocab", "logits", "wte"];
        let rows = self.tables.embedding.rows as usize;
        let known: BTreeSet<&str> = self.tables().map(|(_, table)| table.tensor.as_str()).collect();
        for shard in &self.shards {
            let mut all = shard.header.in_order();
            let unknown = all.find(|(name, info)| {
                info.shape.first() == Some(&rows)
                    && !info.shape.contains(&self.tables.embedding.hidden)
                    && !is_in_layer(name)
                    && !name.contains("position")
                    && NAMES.iter().any(|part| name.contains(part))
                    && !known.contains(&**name)
            });
            if let Some((name, info)) = unknown {
                let problem = format!(
                    "{name}, {:?}, also has a row for each token, for a use that drift does not know",
                    info.shape
                );
                let remedy = "extend this model with transformers";
                return Err(Error::input(shard.path.display(), problem, remedy));
            }
        }
        Ok(())
    }

    /// Checks that every decoder layer is present, and that all layers have the same tensors with the same shapes.
    fn check_layers(&self) -> Result<()> {
        let alike = self.config["model_type"].as_str().is_some_and(|kind| LAYERS_ALIKE.contains(&kind));
        let Some(count) = self.config["num_hidden_layers"].as_u64().filter(|_| alike) else { return Ok(()) };
        Layers::of(self.shards.iter().map(|shard| &shard.header)).check(count).map_err(|problem| {
            Error::input(self.folder.path().display(), problem, "fetch the whole model again")
        })
    }

    /// Returns the tables that get new rows, by name.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&'static str, &TokenTable)> {
        let head = self.tables.head.as_ref().or(self.redundant_head.as_ref());
        [
            ("embed_tokens", Some(&self.tables.embedding)),
            ("lm_head", head),
            ("lm_head_bias", self.tables.bias.as_ref()),
        ]
        .into_iter()
        .filter_map(|(name, table)| Some((name, table?)))
    }

    /// Refuses ids of special tokens in the settings that would become new tokens, and special tokens that differ between the model
    /// and the tokenizer.
    ///
    /// # Errors
    /// If there is such an id or token.
    pub(super) fn check_special_tokens(&self, tokenizer: &Path, new: &NewTokens) -> Result<()> {
        // An id after the last token is unused until a new token takes it. Then text would end wherever the new token is written.
        let files = [(CONFIG, Some(&self.config)), (GENERATION_CONFIG, self.generation.as_ref())];
        for (file, settings) in files.into_iter().filter_map(|(file, settings)| Some((file, settings?))) {
            let place = self.folder.path().join(file);
            for (name, id) in special_ids(settings).chain(special_ids(&settings["text_config"])) {
                if let Some(token) = new.new_tokens.iter().find(|token| u64::from(token.id) == id) {
                    let problem = format!(
                        "{name} {id} is not a token of the model's tokenizer, and would become the new token {:?}",
                        token.text
                    );
                    return Err(Error::input(place.display(), problem, "correct it first"));
                }
            }
        }
        let (Some(own), Some(other)) = (&self.tokenizer_config, config_beside(tokenizer)?) else {
            return Ok(());
        };
        for name in ["bos_token", "eos_token", "pad_token", "unk_token"] {
            if let (Some(own), Some(other)) = (named(own, name), named(&other, name))
                && own != other
            {
                let problem = format!("{name} is {other:?}, but {own:?} in the model's {TOKENIZER_CONFIG}");
                return Err(Error::input(tokenizer.display(), problem, "make the two agree"));
            }
        }
        Ok(())
    }
}

/// Returns the ids of special tokens in a settings file, with their names.
fn special_ids(settings: &Value) -> impl Iterator<Item = (&str, u64)> {
    let entries = settings.as_object().into_iter().flatten();
    let ids = entries.filter(|(name, _)| name.ends_with("_token_id"));
    ids.flat_map(|(name, ids)| {
        let several = ids.as_array().into_iter().flatten();
        several.chain([ids]).filter_map(|id| id.as_u64()).map(|id| (name.as_str(), id))
    })
}

/// Returns a special token in a `tokenizer_config.json`, which is a string, or an object with its content.
pub(super) fn named<'c>(config: &'c Value, name: &str) -> Option<&'c str> {
    let token = config.get(name)?;
    token.as_str().or_else(|| token.get("content")?.as_str())
}

/// Returns the weights files with their headers, and the index.
fn weights(path: &Path, folder: &ModelFolder) -> Result<(Vec<Shard>, Option<Value>)> {
    let file = if path.is_dir() { folder.needed_weights()? } else { path.to_owned() };
    let files = WeightFiles::find(&file, "give the index that came with the shards")?;
    let WeightFiles::Shards(listed) = &files else {
        let shard = Shard { header: Header::read(&file)?, name: WEIGHTS.to_owned(), path: file };
        return Ok((vec![shard], None));
    };
    let mut shards = Vec::new();
    for path in files.files() {
        if !path.is_file() {
            let problem = format!("lists {}, which is missing", file_name(path));
            return Err(Error::input(file.display(), problem, "fetch it"));
        }
        let shard = Shard { name: file_name(path), path: path.to_owned(), header: Header::read(path)? };
        let held: BTreeSet<String> = shard.header.tensors.offset_keys().into_iter().collect();
        let lacks = |(name, at): &(&String, &PathBuf)| *at == path && !held.contains(*name);
        if let Some((name, _)) = listed.iter().find(lacks) {
            let problem = format!("has no tensor {name}, though {} says so", file_name(&file));
            return Err(Error::input(path.display(), problem, "fetch the shard again"));
        }
        shards.push(shard);
    }
    let name = file_name(&file);
    let index =
        folder.needed_json(&name, |e| (format!("is not JSON: {e}"), "give an intact model folder"))?;
    Ok((shards, Some(index)))
}
