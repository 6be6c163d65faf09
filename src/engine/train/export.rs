//! Writes the checkpoint in the format of Hugging Face's transformers.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{TensorView, serialize};
use serde_json::{Value, json};

use super::parameters::ParameterLayout;
use super::report::TrainReport;
use drift_core::checkpoint::{
    CONFIG, EXTENSION, Float, GENERATION_CONFIG, ModelFolder, RECIPE, TOKENIZER_CONFIG, WEIGHTS,
};
use drift_core::io::OutputSet;
use drift_core::tokenizer::NamedToken;
use drift_core::{Error, Result};
use drift_tune::design::extension::config::tokenizer_config;

/// The files and settings beside the weights.
pub struct Companions<'c> {
    /// The number type of the weights.
    pub float: Float,
    /// `config.json`.
    pub config: &'c Value,
    /// `generation_config.json`, if it is kept.
    pub generation: Option<&'c Value>,
    /// `tokenizer.json`, unchanged.
    pub tokenizer_json: &'c [u8],
    /// The `tokenizer_config.json` beside it, if there is one.
    pub tokenizer_config: Option<&'c Value>,
    /// The token that ends a text.
    pub end: &'c NamedToken,
    /// The token that begins a text.
    pub begin: Option<&'c NamedToken>,
}

/// All files of a checkpoint, and of a training that can be resumed.
pub const WRITTEN: [&str; 7] =
    ["tokenizer.json", TOKENIZER_CONFIG, CONFIG, GENERATION_CONFIG, RECIPE, WEIGHTS, super::state::FILE];

/// Writes all files of a checkpoint or none. The weights come last, so that their presence means that all files are there.
///
/// # Errors
/// If the folder cannot be made or written to.
pub fn write(
    folder: &Path,
    weights: &[f32],
    layout: &ParameterLayout,
    companions: &Companions<'_>,
    report: &TrainReport,
) -> Result<()> {
    let mut files = OutputSet::new();
    files.folder(folder)?;
    let mut file = |name: &str, bytes: &[u8]| files.put(&folder.join(name), bytes);
    let document = |value: &Value| format!("{value:#}\n").into_bytes();
    file("tokenizer.json", companions.tokenizer_json)?;
    let mut config = tokenizer_config(companions.tokenizer_config);
    // The base's configuration may name another end token, as for chat models; the documents end with this one.
    config["eos_token"] = companions.end.text.as_str().into();
    file(TOKENIZER_CONFIG, &document(&config))?;
    file(CONFIG, &document(companions.config))?;
    let generation = companions.generation.cloned().unwrap_or_else(|| {
        let mut generation = json!({ "eos_token_id": companions.end.id });
        if let Some(begin) = companions.begin {
            generation["bos_token_id"] = begin.id.into();
        }
        generation
    });
    file(GENERATION_CONFIG, &document(&generation))?;
    let refuse =
        |e: &dyn std::fmt::Display| Error::input(folder.display(), format!("cannot be written: {e}"), "");
    file(RECIPE, &document(&serde_json::to_value(report).map_err(|e| refuse(&e))?))?;
    let (dtype, size) = (companions.float.dtype(), companions.float.bytes());
    let bytes = bytes_of(weights, companions.float);
    let views = layout.parameters.iter().map(|parameter| {
        let bytes = &bytes[size * parameter.range.start..size * parameter.range.end];
        let view = TensorView::new(dtype, parameter.shape.clone(), bytes).map_err(|e| refuse(&e))?;
        Ok((parameter.name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>>>()?;
    // transformers refuses files without a `format`.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    file(WEIGHTS, &serialize(views, Some(metadata)).map_err(|e| refuse(&e))?)?;
    // Weights of another model in the folder would be mistaken for these.
    let stale = ModelFolder::new(folder).stale_weights(|name| name == WEIGHTS);
    stale.iter().for_each(|file| files.remove(file));
    // It would say the encoding of an extended model that was here before.
    files.remove(&folder.join(EXTENSION));
    files.commit()
}

/// Returns the bytes of weights as they are stored.
fn bytes_of(weights: &[f32], float: Float) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(weights.len() * float.bytes());
    float.write(weights.iter().map(|weight| f64::from(*weight)), &mut bytes);
    bytes
}

/// Returns the weights with the rounding of being stored and read back.
pub fn stored(weights: &[f32], float: Float) -> Vec<f32> {
    float.read(&bytes_of(weights, float))
}
