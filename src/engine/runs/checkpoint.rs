//! The models that are evaluated, with the settings that belong to them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::finished::KeptModel;
use super::plan::{GeneratePlan, ModelChoice};
use crate::generate::{Engine, SelfCheck, Verdict};
use crate::model::{Config, Decoder, Synthetic, end_of_text};
use crate::parameter;
use drift_core::checkpoint::{CONFIG, GENERATION_CONFIG, ModelFolder, RECIPE, TOKENIZER_CONFIG, folder_name};
use drift_core::constraint::Specials;
use drift_core::io::hash_bytes;
use drift_core::job::InputHash;
use drift_core::text::skeleton::Spelling;
use drift_core::{Encoding, Error, Job, Result, Tokenizer};
use drift_data::corpus::{Conformers, EmbeddedConformers, EmbeddedCorpus, Frame};
use drift_data::generation::EncodingEvidence;

/// The files of the reference checkpoint embedded in drift.
const EMBEDDED: [(&str, &[u8]); 6] = [
    ("config.json", include_bytes!("../embedded/config.json")),
    ("generation_config.json", include_bytes!("../embedded/generation_config.json")),
    ("recipe.json", include_bytes!("../embedded/recipe.json")),
    ("tokenizer.json", include_bytes!("../embedded/tokenizer.json")),
    ("tokenizer_config.json", include_bytes!("../embedded/tokenizer_config.json")),
    ("model.safetensors", include_bytes!("../embedded/model.safetensors")),
];

/// The name of the reference checkpoint embedded in drift.
const EMBEDDED_NAME: &str = "qwen-like";

/// A model, ready to generate.
pub(crate) struct Checkpoint {
    /// The name in reports: that of the folder.
    pub name: String,
    /// Its tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// The engine; `None` if nothing is left to compute.
    engine: Option<Engine>,
    /// The tokens that end a text, and those that never occur in one.
    pub specials: Specials,
    /// How coordinates are written. Without `encoding_from`, only the decimals and the separator are known.
    pub encoding: Encoding,
    /// How the encoding was determined.
    pub encoding_from: Option<EncodingEvidence>,
    /// The frame in which the model writes coordinates, according to its recipe. Conformers in prompts are rotated into it.
    pub frame: Frame,
    /// The SHA-256 of each input that drift trained it on, if a recipe lists them.
    pub trained_on: Option<BTreeSet<String>>,
    /// How its training text spells hydrogens, if known: only for models trained on an embedded corpus.
    pub spelling: Option<Spelling>,
    /// The shape, if the weights are random.
    pub synthetic: Option<Synthetic>,
    /// The model's configuration.
    pub config: Config,
    /// The memory bandwidth of its device in bytes per second, after [`Checkpoint::measure`].
    pub bytes_per_second: Option<f64>,
    /// The tokenizer and weights.
    pub inputs: Vec<InputHash>,
    /// Its files of settings: with others the same weights write other texts.
    pub settings: Vec<InputHash>,
}

impl Checkpoint {
    /// Loads one of a plan's models. The weights are not loaded if `kept` is given, since nothing is left to compute then.
    ///
    /// # Errors
    /// If its files are missing, damaged or inconsistent, or no token ends its texts.
    pub(crate) fn load(
        choice: &ModelChoice,
        plan: &GeneratePlan,
        kept: Option<&KeptModel>,
        job: &Job,
    ) -> Result<Self> {
        match choice {
            ModelChoice::Folder(folder) => {
                Checkpoint::of_folder((folder, folder_name(folder)), plan, kept, job)
            }
            ModelChoice::Embedded => {
                let folder = unpacked()?;
                let mut loaded =
                    Checkpoint::of_folder((folder.path(), EMBEDDED_NAME.to_owned()), plan, kept, job)?;
                if plan.tokenizer.is_none() {
                    // The folder is gone when a message suggests a command; the embedded tokenizer of this name is the same.
                    let tokenizer = Arc::make_mut(&mut loaded.tokenizer);
                    tokenizer.place.clone_from(&tokenizer.name);
                }
                Ok(loaded)
            }
            ModelChoice::Synthetic(shape) => Checkpoint::random(*shape, plan, kept, job),
        }
    }

    /// Returns the engine.
    ///
    /// # Errors
    /// If there is no engine.
    pub(crate) fn engine(&mut self) -> Result<&mut Engine> {
        self.engine.as_mut().ok_or_else(|| Error::internal("an evaluation", "nothing is left to be computed"))
    }

    /// Returns how the computation differed from what was requested, if it did and none of the runs' self-checks reports it already.
    pub(crate) fn note_beside<'c>(
        &self,
        mut self_checks: impl Iterator<Item = &'c SelfCheck>,
    ) -> Option<String> {
        if self_checks.any(|check| check.verdict != Verdict::Passed) {
            return None;
        }
        let why = self.engine.as_ref()?.note()?;
        Some(format!("{}: the GPU ran candle's operations instead of drift's kernels: {why}", self.name))
    }

    /// Measures the memory bandwidth of its device, if it computes here.
    pub(crate) fn measure(&mut self) {
        self.bytes_per_second = self.engine.as_ref().and_then(|engine| engine.decoder().bytes_per_second());
    }

    /// Returns the description that is stored in the journal.
    pub(crate) fn kept(&self) -> KeptModel {
        KeptModel {
            name: self.name.clone(),
            encoding: self.encoding,
            encoding_from: self.encoding_from,
            tokenizer: self.tokenizer.source.clone(),
            files: self.engine.as_ref().map_or(&[][..], |engine| engine.decoder().files()).to_vec(),
            settings: self.settings.clone(),
        }
    }

    fn of_folder(
        (folder, name): (&Path, String),
        plan: &GeneratePlan,
        kept: Option<&KeptModel>,
        job: &Job,
    ) -> Result<Self> {
        let (mut tokenizer, _) = Tokenizer::load_for(plan.tokenizer.as_deref().unwrap_or(folder), job)?;
        if plan.tokenizer.is_none() {
            tokenizer.name =
                ModelFolder::new(folder).recipe("/recipe/tokenizer")?.unwrap_or_else(|| name.clone());
        }
        let config = Config::load(folder)?;
        let specials = specials(plan, folder, &config, &tokenizer)?;
        let engine = kept.is_none().then(|| Engine::load(folder, &plan.device)).transpose()?;
        config.check_vocabulary(&tokenizer)?;
        let recipe: Option<Encoding> = ModelFolder::new(folder).recipe("/recipe/dialect")?;
        let asked = plan.encoding;
        let encoding = asked.over(recipe.unwrap_or(Encoding::FIXED));
        let given = asked.says_how().then_some(EncodingEvidence::Given);
        let encoding_from = given.or(recipe.map(|_| EncodingEvidence::Recipe));
        let mut inputs = vec![tokenizer.source.clone()];
        let files = engine.as_ref().map_or(&[][..], |engine| engine.decoder().files());
        inputs.extend_from_slice(kept.map_or(files, |kept| &kept.files));
        Ok(Checkpoint {
            name,
            specials,
            tokenizer: tokenizer.into(),
            engine,
            encoding,
            encoding_from,
            frame: ModelFolder::new(folder).recipe("/recipe/augmentation/frame")?.unwrap_or_default(),
            trained_on: recipe_inputs(folder)?,
            spelling: recipe_spelling(folder, job)?,
            synthetic: None,
            config,
            bytes_per_second: None,
            inputs,
            settings: settings(folder, plan)?,
        })
    }

    fn random(shape: Synthetic, plan: &GeneratePlan, kept: Option<&KeptModel>, job: &Job) -> Result<Self> {
        let path = plan.tokenizer.clone().unwrap_or_else(|| {
            PathBuf::from(match shape {
                Synthetic::Qwen3Small => "qwen-like",
                Synthetic::Llama380M => "llama-like",
            })
        });
        let (tokenizer, _) = Tokenizer::load_for(&path, job)?;
        let config = Config::synthetic(shape);
        let specials = specials(plan, &path, &config, &tokenizer)?;
        config.check_vocabulary(&tokenizer)?;
        let asked = plan.encoding;
        let decoder = || Decoder::random(config.clone(), plan.seed, &plan.device);
        let engine = kept.is_none().then(decoder).transpose()?.map(Engine::from);
        Ok(Checkpoint {
            name: shape.name().to_owned(),
            specials,
            inputs: vec![tokenizer.source.clone()],
            tokenizer: tokenizer.into(),
            engine,
            encoding: asked.over(Encoding::FIXED),
            encoding_from: Some(match asked.says_how() {
                true => EncodingEvidence::Given,
                false => EncodingEvidence::Default,
            }),
            frame: Frame::Keep,
            trained_on: None,
            spelling: None,
            synthetic: Some(shape),
            config,
            bytes_per_second: None,
            settings: Vec::new(),
        })
    }
}

/// Returns the SHA-256 of the inputs on which drift trained all of these models. Empty if one of them was not trained by drift.
///
/// # Errors
/// If a recipe cannot be read.
pub fn trained_on(models: &[ModelChoice]) -> Result<BTreeSet<String>> {
    let embedded = || {
        let (_, bytes) = EMBEDDED.iter().find(|(name, _)| *name == RECIPE)?;
        let recipe: Value = serde_json::from_slice(bytes).ok()?;
        inputs_of(serde_json::from_value(recipe["recipe"]["inputs"].clone()).ok())
    };
    let of_model = |choice: &ModelChoice| match choice {
        ModelChoice::Folder(folder) => recipe_inputs(folder),
        ModelChoice::Embedded => Ok(embedded()),
        ModelChoice::Synthetic(_) => Ok(None),
    };
    let sets: Vec<_> = models.iter().map(of_model).collect::<Result<_>>()?;
    let sets = sets.into_iter().map(Option::unwrap_or_default);
    Ok(sets.reduce(|a, b| a.intersection(&b).cloned().collect()).unwrap_or_default())
}

/// Returns the hashes of a model's training inputs according to its recipe. `None` without a recipe, or if training started from a
/// checkpoint with unknown training data.
fn recipe_inputs(folder: &Path) -> Result<Option<BTreeSet<String>>> {
    let folder = ModelFolder::new(folder);
    let is_known = folder.recipe("/recipe/init/by_drift")? != Some(false);
    Ok(inputs_of(folder.recipe("/recipe/inputs")?.filter(|_| is_known)))
}

/// Returns the hashes of the files of settings of a model, and of its tokenizer.
fn settings(folder: &Path, plan: &GeneratePlan) -> Result<Vec<InputHash>> {
    let of_tokenizer =
        plan.tokenizer.as_deref().map_or_else(|| ModelFolder::new(folder), ModelFolder::around);
    let of_model = [CONFIG, GENERATION_CONFIG, RECIPE].map(|name| (ModelFolder::new(folder), name));
    let all = of_model.into_iter().chain([(of_tokenizer, TOKENIZER_CONFIG)]);
    let hashes = all.map(|(folder, name)| Ok(folder.bytes(name)?.map(|bytes| hash_bytes(name, &bytes))));
    hashes.filter_map(Result::transpose).collect()
}

/// Returns the hashes of a recipe's inputs.
fn inputs_of(inputs: Option<Vec<Value>>) -> Option<BTreeSet<String>> {
    inputs?.iter().map(|input| Some(input["sha256"].as_str()?.to_owned())).collect()
}

/// Returns the reference checkpoint in a temporary folder, which is deleted when dropped.
fn unpacked() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir().map_err(|e| Error::io(&std::env::temp_dir(), e))?;
    for (name, bytes) in EMBEDDED {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).map_err(|e| Error::io(&path, e))?;
    }
    Ok(folder)
}

/// Returns how the training text spells hydrogens, if it is an embedded corpus, recognized by its hash.
fn recipe_spelling(folder: &Path, job: &Job) -> Result<Option<Spelling>> {
    let trained_on = recipe_inputs(folder)?.unwrap_or_default();
    let mut embedded = EmbeddedCorpus::ALL.into_iter();
    let Some(corpus) = embedded.find(|own| trained_on.contains(&own.trained_on())) else { return Ok(None) };
    let mut spelling = Spelling::default();
    EmbeddedConformers { corpus, ..EmbeddedConformers::default() }.read(job, &mut |batch| {
        let conformers = batch.conformers.iter();
        spelling = conformers.fold(spelling, |sum, one| sum.join(Spelling::from_skeleton(&one.skeleton)));
        Ok(())
    })?;
    Ok(Some(spelling))
}

/// Returns the special tokens. If the user names the end of texts, it is the only one, and those of the model's files are others.
fn specials(plan: &GeneratePlan, folder: &Path, config: &Config, tokenizer: &Tokenizer) -> Result<Specials> {
    let named = end_of_text(folder, config, tokenizer);
    let bos = config.bos_token_id;
    let Some(asked) = &plan.eos else {
        let named = named?;
        let eos = named[0];
        let [ends, others] = [named, bos.into_iter().collect()]
            .map(|ids| ids.into_iter().filter(|id| *id != eos).collect::<Vec<u32>>());
        return Ok(Specials { eos, ends, others });
    };
    let id = tokenizer.vocabulary_id(asked).ok_or_else(|| {
        let problem = format!("`{asked}` is not a token of {}", tokenizer.name);
        Error::parameter(parameter::EOS, problem, "give one of its tokens")
    })?;
    // If the model's files name no end token, the requested one is enough.
    let others = named.unwrap_or_default().into_iter().chain(bos).filter(|other| *other != id);
    Ok(Specials { eos: id, ends: Vec::new(), others: others.collect() })
}
