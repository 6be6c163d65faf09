//! The start of a training: random weights of a shape, or a checkpoint to fine-tune.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::parameters::ParameterLayout;
use super::recipe::{InitRecipe, Shape};
use crate::model::{Config, load_numbers};
use crate::parameter;
use drift_core::checkpoint::{CONFIG, Float, GENERATION_CONFIG, Header, ModelFolder, WeightFiles};
use drift_core::io::hash_bytes;
use drift_core::job::InputHash;
use drift_core::tokenizer::NamedToken;
use drift_core::{Error, Result, Tokenizer};

/// The start of a training.
pub enum Start {
    /// Random weights of this shape, with tied embeddings.
    Random(Shape),
    /// The weights of a checkpoint.
    Checkpoint(Box<InitCheckpoint>),
}

/// The checkpoint to fine-tune.
pub struct InitCheckpoint {
    /// Its folder.
    folder: PathBuf,
    /// Its shape.
    pub config: Config,
    /// Its `config.json`, unchanged.
    written: Value,
    /// Its `generation_config.json`, if there is one.
    generation: Option<Value>,
    /// The type of its numbers.
    float: Float,
    /// The checkpoint's own tokenizer. The tokenizer of training must be the same or an extension of it.
    pub tokenizer: Option<Tokenizer>,
    /// The largest length of a document, in tokens.
    pub context: usize,
    /// The tokenizer whose tokens are not new; the checkpoint's own tokenizer by default.
    pub known: Option<Tokenizer>,
}

impl InitCheckpoint {
    /// Opens the checkpoint in `folder` and reads its settings, but not its weights yet. Documents have at most `context` tokens, by
    /// default as many as the model's context.
    ///
    /// # Errors
    /// If its settings or headers cannot be read, or belong to a model that drift cannot train.
    pub fn open(folder: &Path, context: Option<usize>) -> Result<Self> {
        let config = Config::load(folder)?;
        let files = ModelFolder::new(folder);
        let unread = |e: serde_json::Error| (e.to_string(), "repair or remove it");
        let written = files.needed_json(CONFIG, unread)?;
        let generation = files.json(GENERATION_CONFIG, unread)?;
        let most = config.max_position_embeddings;
        let context = context.unwrap_or(most);
        if context > most {
            let problem = format!("{context} tokens are more than the model's {most}");
            return Err(Error::parameter(parameter::CONTEXT, problem, "give fewer"));
        }
        let float = widest(&files)?;
        let tokenizer = files.file("tokenizer.json").map(|_| Tokenizer::load(folder)).transpose()?;
        let folder = folder.to_owned();
        Ok(InitCheckpoint { folder, config, written, generation, float, tokenizer, context, known: None })
    }

    /// Refuses a tokenizer that is neither the checkpoint's own nor an extension of it, or that has tokens without a row.
    ///
    /// # Errors
    /// If the tokenizer is refused.
    fn check(&self, tokenizer: &Tokenizer) -> Result<()> {
        let ids = tokenizer.vocabulary();
        for own in self.tokenizer.iter().chain(&self.known) {
            let lost = own.vocabulary().into_iter().filter(|(token, id)| ids.get(token) != Some(id));
            // The smallest id, so that the message is the same in every run.
            if let Some((token, id)) = lost.min_by_key(|(_, id)| *id) {
                let here = ids.get(&token).map_or("none here".to_owned(), |id| format!("{id} here"));
                let problem = format!(
                    "is not an extension of {}: `{}` has id {id} there, {here}",
                    own.name,
                    token.escape_debug()
                );
                let remedy = "give the model's own tokenizer, or an extension of it that drift made";
                return Err(Error::input(&tokenizer.source.name, problem, remedy));
            }
        }
        let most = tokenizer.rows() as usize;
        if most > self.config.vocab_size {
            let problem = format!(
                "the tokenizer has ids up to {}, the embedding of {} {} rows",
                most - 1,
                self.folder.display(),
                self.config.vocab_size
            );
            let remedy = "add rows for them first, with drift extend-model";
            return Err(Error::input(&tokenizer.source.name, problem, remedy));
        }
        Ok(())
    }

    /// Returns the ids of the tokens that the base lacks, in order.
    fn new_tokens(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        let Some(known) = self.known.as_ref().or(self.tokenizer.as_ref()) else { return Vec::new() };
        let known = known.vocabulary();
        let new = tokenizer.vocabulary().into_iter().filter(|(token, _)| !known.contains_key(token));
        let mut ids: Vec<u32> = new.map(|(_, id)| id).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the weights in the order of the layout, and the files of the weights and the config.
    fn read(&self, layout: &ParameterLayout) -> Result<(Vec<f32>, Vec<InputHash>)> {
        let (weights, mut files) = load_numbers(&self.folder, layout.tensors())?;
        files.insert(0, hash_bytes(CONFIG, self.written.to_string().as_bytes()));
        Ok((weights, files))
    }
}

impl Start {
    /// Returns the checkpoint, if training does not start with random weights.
    fn base(&self) -> Option<&InitCheckpoint> {
        match self {
            Start::Random(_) => None,
            Start::Checkpoint(base) => Some(base),
        }
    }

    /// Checks whether training with this tokenizer can start here.
    ///
    /// # Errors
    /// If the checkpoint does not fit the tokenizer, or rows of new tokens are to be trained alone and there are none.
    pub(super) fn check(&self, tokenizer: &Tokenizer, new_rows_steps: u64) -> Result<()> {
        self.base().map_or(Ok(()), |base| base.check(tokenizer))?;
        if new_rows_steps > 0 && self.new_tokens(tokenizer).is_empty() {
            let problem = format!("has no new tokens for {}", parameter::NEW_ROWS_STEPS);
            let remedy = format!("say with {} which tokens it has learned", parameter::NEW_TOKENS_OF);
            let place = self.base().map_or("training".to_owned(), |base| base.folder.display().to_string());
            return Err(Error::input(place, problem, remedy));
        }
        Ok(())
    }

    /// Returns the config of the decoder, and the largest length of a document in tokens.
    ///
    /// # Errors
    /// If no decoder has this shape.
    pub(super) fn config(
        &self,
        tokenizer: &Tokenizer,
        begin: Option<&NamedToken>,
        end: &NamedToken,
    ) -> Result<(Config, usize)> {
        match self {
            Start::Random(shape) => Ok((shape.config(tokenizer.rows() as usize, begin, end)?, shape.context)),
            Start::Checkpoint(base) => Ok((base.config.clone(), base.context)),
        }
    }

    /// Returns the ids of tokens whose rows the checkpoint has not trained, in order.
    pub(super) fn new_tokens(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        self.base().map_or_else(Vec::new, |base| base.new_tokens(tokenizer))
    }

    /// Returns the first weights, and their description for the recipe.
    ///
    /// # Errors
    /// If the weights cannot be read, or do not match the layout.
    pub(super) fn weights(
        &self,
        layout: &ParameterLayout,
        tokenizer: &Tokenizer,
        seed: u64,
    ) -> Result<(Vec<f32>, Option<InitRecipe>)> {
        let Some(base) = self.base() else { return Ok((layout.initial(seed), None)) };
        let (weights, files) = base.read(layout)?;
        let new_tokens = base.new_tokens(tokenizer).len() as u64;
        Ok((weights, Some(InitRecipe { files, new_tokens, by_drift: is_by_drift(&base.folder)? })))
    }

    /// `config.json` of the result: that of the checkpoint, except for an end token that it lacks.
    pub(super) fn written_config(&self, config: &Config, end: &NamedToken) -> Value {
        self.base().map_or_else(|| config.to_value(), |base| with_end(base.written.clone(), end))
    }

    /// `generation_config.json` of the result, if the checkpoint has one.
    pub(super) fn generation_config(&self, end: &NamedToken) -> Option<Value> {
        self.base()?.generation.clone().map(|config| with_end(config, end))
    }

    /// Returns the type in which weights are written: the checkpoint's, or bf16.
    pub(super) fn float(&self) -> Float {
        self.base().map_or(Float::Bf16, |base| base.float)
    }
}

/// Returns whether the recipe of a checkpoint says that drift trained it from random weights.
fn is_by_drift(folder: &Path) -> Result<bool> {
    let folder = ModelFolder::new(folder);
    let inputs: Option<Vec<InputHash>> = folder.recipe("/recipe/inputs")?;
    // A recipe without `init` began with random weights. One with `init` counts only if its checkpoint was drift's own.
    Ok(inputs.is_some() && folder.recipe("/recipe/init/by_drift")? != Some(false))
}

/// Returns a config whose `eos_token_id` begins with this end token. The other end tokens of `config` stay only if this one is among them.
fn with_end(mut config: Value, end: &NamedToken) -> Value {
    let place = match &mut config["eos_token_id"] {
        Value::Array(ids) => ids.iter().position(|id| *id == end.id).map(|at| ids[..=at].rotate_right(1)),
        _ => None,
    };
    if place.is_none() {
        config["eos_token_id"] = end.id.into();
    }
    config
}

/// Returns the widest type of a checkpoint's tensors. Missing files and other number types are skipped here; reading the weights reports
/// them.
fn widest(folder: &ModelFolder) -> Result<Float> {
    let Some(file) = folder.weights() else { return Ok(Float::Bf16) };
    let mut widest = None;
    for file in WeightFiles::find(&file, "give the index that came with the shards")?.files() {
        if !file.is_file() {
            continue;
        }
        let tensors = Header::read(file)?.tensors;
        let types = tensors.tensors().into_values().filter_map(|info| Float::from_dtype(info.dtype));
        widest = types.chain(widest).max();
    }
    Ok(widest.unwrap_or(Float::Bf16))
}
