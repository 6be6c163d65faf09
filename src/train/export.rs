//! The checkpoint as Hugging Face's transformers reads it.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};

use super::parameters::ParameterLayout;
use super::report::TrainReport;
use crate::checkpoint::{CONFIG, GENERATION_CONFIG, RECIPE, TOKENIZER_CONFIG};
use crate::design::extension::config::tokenizer_config;
use crate::error::{Error, Result};
use crate::io::OutputSet;
use crate::model::Config;
use crate::tokenizer::Named;

/// A weight as bf16: the upper half of an `f32`, rounded to nearest, ties to even.
fn bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    ((u64::from(bits) + 0x7fff + u64::from(bits >> 16 & 1)) >> 16) as u16
}

/// Weights as they are after storage in bf16.
pub fn stored(weights: &[f32]) -> Vec<f32> {
    weights.iter().map(|&value| f32::from_bits(u32::from(bf16(value)) << 16)).collect()
}

/// What goes beside the weights.
pub struct Companions<'c> {
    /// `config.json`.
    pub config: &'c Config,
    /// `tokenizer.json`, as given.
    pub tokenizer_json: &'c [u8],
    /// The `tokenizer_config.json` beside it, if there was one.
    pub tokenizer_config: Option<&'c Value>,
    /// The end of text.
    pub end: &'c Named,
    /// The beginning of text.
    pub begin: Option<&'c Named>,
}

/// The file of the weights.
const WEIGHTS: &str = "model.safetensors";

/// Every file of a checkpoint, and of a training that can go on.
pub const WRITTEN: [&str; 7] =
    ["tokenizer.json", TOKENIZER_CONFIG, CONFIG, GENERATION_CONFIG, RECIPE, WEIGHTS, super::state::FILE];

/// Writes all files of a checkpoint or none; the weights last, so that they stand for the whole.
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
    config["eos_token"] = companions.end.text.as_str().into();
    file(TOKENIZER_CONFIG, &document(&config))?;
    file(CONFIG, companions.config.to_json().as_bytes())?;
    let mut generation = json!({ "eos_token_id": companions.end.id });
    if let Some(begin) = companions.begin {
        generation["bos_token_id"] = begin.id.into();
    }
    file(GENERATION_CONFIG, &document(&generation))?;
    let refuse =
        |e: &dyn std::fmt::Display| Error::input(folder.display(), format!("cannot be written: {e}"), "");
    file(RECIPE, &document(&serde_json::to_value(report).map_err(|e| refuse(&e))?))?;
    let bytes: Vec<u8> = weights.iter().flat_map(|&value| bf16(value).to_le_bytes()).collect();
    let views = layout.parameters.iter().map(|parameter| {
        let bytes = &bytes[2 * parameter.range.start..2 * parameter.range.end];
        let view = TensorView::new(Dtype::BF16, parameter.shape.clone(), bytes).map_err(|e| refuse(&e))?;
        Ok((parameter.name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>>>()?;
    // transformers refuses files without a format.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    file(WEIGHTS, &serialize(views, Some(metadata)).map_err(|e| refuse(&e))?)?;
    files.commit()
}
