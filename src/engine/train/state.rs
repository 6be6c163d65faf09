//! The state of an interrupted training: `training.safetensors` has everything that is needed to continue.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, View, serialize};
use serde::{Deserialize, Serialize};

use super::optimizer::FlatWeights;
use super::recipe::Recipe;
use super::report::{CurvePoint, Validation};
use crate::parameter;
use drift_core::io::{read_to_limit, write_atomic};
use drift_core::{Error, Result};

/// The file name in the output folder.
pub const FILE: &str = "training.safetensors";

/// The largest size of the state, in bytes.
const MAX_BYTES: u64 = 1 << 36;

/// The state of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingState {
    /// Weights and moments.
    pub weighted: FlatWeights,
    /// The curves and counts so far.
    pub past: TrainingHistory,
}

/// The curves and counts so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingHistory {
    /// The number of document tokens seen.
    pub tokens: u64,
    /// The loss curve.
    pub curve: Vec<CurvePoint>,
    /// The validations.
    pub validation: Vec<Validation>,
    /// The sums since the last point of the loss curve: of the losses, and of the targets' weights.
    pub pending: [f64; 2],
}

/// What a training must have in common with the state that it goes on from.
#[derive(Clone, Copy)]
pub struct Origin<'o> {
    /// The recipe.
    pub recipe: &'o Recipe,
    /// The SHA-256 of the documents.
    pub documents: &'o str,
}

/// The metadata of the file, as JSON under the key `drift`.
#[derive(Serialize, Deserialize)]
struct Metadata {
    recipe: serde_json::Value,
    /// The SHA-256 of the documents; older states have none.
    documents: Option<String>,
    step: u64,
    past: TrainingHistory,
}

/// A vector of `f32` whose bytes are made when they are written, so that a save holds those of one vector at a time beside the file.
struct Vector<'v> {
    values: &'v [f32],
    shape: [usize; 1],
}

impl View for Vector<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
    }

    fn data_len(&self) -> usize {
        size_of_val(self.values)
    }
}

impl TrainingState {
    /// Writes the complete state, or nothing.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn save(&self, folder: &Path, origin: Origin<'_>) -> Result<()> {
        let file = folder.join(FILE);
        let fault =
            |e: &dyn std::fmt::Display| Error::internal(file.display(), format!("cannot be made: {e}"));
        let metadata = Metadata {
            recipe: serde_json::to_value(origin.recipe).map_err(|e| fault(&e))?,
            documents: Some(origin.documents.to_owned()),
            step: self.weighted.step,
            past: self.past.clone(),
        };
        let metadata = serde_json::to_string(&metadata).map_err(|e| fault(&e))?;
        let FlatWeights { weights, first, second, .. } = &self.weighted;
        let tensors = [("weights", weights), ("first", first), ("second", second)]
            .map(|(name, values)| (name, Vector { values, shape: [values.len()] }));
        let metadata = HashMap::from([("drift".to_owned(), metadata)]);
        write_atomic(&file, &serialize(tensors, Some(metadata)).map_err(|e| fault(&e))?)
    }

    /// Reads the state of a training of this origin with `size` weights.
    ///
    /// # Errors
    /// If there is no state, it is damaged, or it belongs to another recipe or other documents.
    pub fn load(folder: &Path, origin: Origin<'_>, size: usize) -> Result<Self> {
        let recipe = origin.recipe;
        let file = folder.join(FILE);
        if !file.is_file() {
            let remedy = format!("train without {} first", parameter::RESUME);
            return Err(Error::input(file.display(), "is not there", remedy));
        }
        let damaged = |e: &dyn std::fmt::Display| {
            let remedy = format!("start again, without {}", parameter::RESUME);
            Error::input(file.display(), format!("is not a training state: {e}"), remedy)
        };
        let bytes = read_to_limit(&file, MAX_BYTES)?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(&e))?;
        let text = header.metadata().as_ref().and_then(|all| all.get("drift"));
        let text = text.ok_or_else(|| damaged(&"it contains no recipe"))?;
        let metadata: Metadata = serde_json::from_str(text).map_err(|e| damaged(&e))?;
        let wanted = serde_json::to_value(recipe).map_err(|e| damaged(&e))?;
        // Compared as JSON, so that a field that only one version has also counts as a difference.
        if let Some(at) = difference(&metadata.recipe, &wanted, String::new()) {
            let problem = format!("was made with another recipe: {at}");
            let remedy = "give the same options and inputs, or start a new training";
            return Err(Error::input(file.display(), problem, remedy));
        }
        if metadata.documents.is_some_and(|documents| documents != origin.documents) {
            let problem = "was made with other texts of the same files";
            let remedy = "give the same options for reading them, or start a new training";
            return Err(Error::input(file.display(), problem, remedy));
        }
        if metadata.step > recipe.schedule.steps {
            return Err(damaged(&format!("it is at step {}", metadata.step)));
        }
        let tensors = SafeTensors::deserialize(&bytes).map_err(|e| damaged(&e))?;
        let values = |name: &str| -> Result<Vec<f32>> {
            let tensor = tensors.tensor(name).map_err(|e| damaged(&e))?;
            if tensor.dtype() != Dtype::F32 || tensor.shape() != [size] {
                return Err(damaged(&format!("{name} has another shape")));
            }
            // Every chunk has four bytes.
            Ok(tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
        };
        let weighted = FlatWeights {
            weights: values("weights")?,
            first: values("first")?,
            second: values("second")?,
            step: metadata.step,
        };
        Ok(TrainingState { weighted, past: metadata.past })
    }
}

/// Returns the first place at which two JSON documents differ, and the difference.
fn difference(old: &serde_json::Value, new: &serde_json::Value, at: String) -> Option<String> {
    use serde_json::Value::{Array, Object};
    match (old, new) {
        (Object(a), Object(b)) if a.keys().eq(b.keys()) => {
            let dot = if at.is_empty() { "" } else { "." };
            a.iter().zip(b.values()).find_map(|((key, a), b)| difference(a, b, format!("{at}{dot}{key}")))
        }
        (Array(a), Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).find_map(|(a, b)| difference(a, b, at.clone()))
        }
        _ => (old != new).then(|| format!("{at} was {old}, is {new}")),
    }
}
