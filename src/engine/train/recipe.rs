//! The recipe of a model: every choice that its weights depend on.

use serde::{Deserialize, Serialize};

use super::augment::Augmentation;
use super::documents::Loss;
use crate::model::{Architecture, Config};
use crate::parameter;
use drift_core::error::Parameter;
use drift_core::job::InputHash;
use drift_core::tokenizer::NamedToken;
use drift_core::{Encoding, Error, Result};

/// The shape of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Qwen3 or Llama.
    pub architecture: Architecture,
    /// Width of the residual stream.
    pub hidden: usize,
    /// The number of decoder layers.
    pub layers: usize,
    /// The number of query heads.
    pub heads: usize,
    /// The number of key and value heads; divides the number of query heads.
    pub kv_heads: usize,
    /// The size of a head; even.
    pub head_dim: usize,
    /// Width inside the MLP.
    pub intermediate: usize,
    /// The largest length of a document, in tokens; longer documents are left out.
    pub context: usize,
}

impl Shape {
    /// Returns the shape of a checkpoint, for documents of up to `context` tokens.
    pub fn from_config(config: &Config, context: usize) -> Self {
        Shape {
            architecture: config.architecture,
            hidden: config.hidden_size,
            layers: config.num_hidden_layers,
            heads: config.num_attention_heads,
            kv_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            intermediate: config.intermediate_size,
            context,
        }
    }

    /// Returns the config of a checkpoint of this shape.
    ///
    /// # Errors
    /// If no decoder has this shape.
    pub fn config(&self, vocabulary: usize, begin: Option<&NamedToken>, end: &NamedToken) -> Result<Config> {
        let config = Config {
            architecture: self.architecture,
            vocab_size: vocabulary,
            hidden_size: self.hidden,
            intermediate_size: self.intermediate,
            num_hidden_layers: self.layers,
            num_attention_heads: self.heads,
            num_key_value_heads: self.kv_heads,
            head_dim: self.head_dim,
            max_position_embeddings: self.context,
            rms_norm_eps: 1e-6,
            rope_theta: 10_000.0,
            rope_scaling: None,
            tie_word_embeddings: true,
            bos_token_id: begin.map(|token| token.id),
            eos_token_ids: vec![end.id],
            torch_dtype: Some("bfloat16".into()),
        };
        // Parsing validates the values.
        serde_json::from_str(&config.to_json()).map_err(|e| {
            let [heads, kv_heads, head_dim] = [parameter::HEADS, parameter::KV_HEADS, parameter::HEAD_DIM];
            let remedy = format!("change {heads}, {kv_heads} or {head_dim}");
            Error::input("the model's shape", e, remedy)
        })
    }
}

/// The optimizer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// AdamW for all weights.
    #[default]
    AdamW,
    /// Muon for the matrices inside the layers.
    Muon,
}

/// The schedule of the updates: a linear warm-up of the learning rate, then a cosine decay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The number of updates of the weights.
    pub steps: u64,
    /// The least number of document tokens in an update.
    pub batch_tokens: usize,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// The number of updates until the highest learning rate is reached.
    pub warmup_steps: u64,
    /// The learning rate at the end, as a fraction of the highest.
    pub final_share: f64,
    /// The weight decay of matrices, per unit of learning rate.
    pub weight_decay: f64,
    /// The largest norm of a gradient; larger ones are clipped.
    pub clip: f64,
    /// The number of updates, before all others, on documents that keep more and more of their coordinates, beginning with none. A
    /// model learns to copy a SMILES sooner if there are fewer tokens between two atoms.
    pub outline_steps: u64,
    /// Whether the first pass goes from short documents to long ones.
    pub shortest_first: bool,
    /// The number of updates, before all others, that train only the rows of new tokens. The warm-up of the learning rate then
    /// starts again.
    pub new_rows_steps: u64,
}

impl Schedule {
    /// Returns the learning rate of an update, counted from 0.
    pub fn rate(&self, step: u64) -> f64 {
        let warm = |step: u64| self.learning_rate * (step + 1) as f64 / self.warmup_steps as f64;
        if step < self.new_rows_steps {
            // Without warm-up steps this is infinite, and the minimum below is the learning rate.
            return warm(step).min(self.learning_rate);
        }
        let (step, steps) = (step - self.new_rows_steps, self.steps.saturating_sub(self.new_rows_steps));
        if step < self.warmup_steps {
            return warm(step);
        }
        // At least 1, for a schedule that is all warm-up.
        let decay = steps.saturating_sub(self.warmup_steps).max(1);
        let done = ((step - self.warmup_steps) as f64 / decay as f64).min(1.0);
        let cosine = (1.0 + (std::f64::consts::PI * done).cos()) / 2.0;
        self.learning_rate * (self.final_share + (1.0 - self.final_share) * cosine)
    }

    /// Checks the schedule.
    ///
    /// # Errors
    /// If nothing would be learned, or a value is not valid.
    pub fn check(&self) -> Result<()> {
        let positive = |parameter: Parameter, value: f64| {
            let fine = value.is_finite() && value > 0.0;
            let problem = format!("is {value}");
            if fine { Ok(()) } else { Err(Error::parameter(parameter, problem, "give a number above 0")) }
        };
        positive(parameter::STEPS, self.steps as f64)?;
        positive(parameter::BATCH_TOKENS, self.batch_tokens as f64)?;
        positive(parameter::LEARNING_RATE, self.learning_rate)?;
        positive(parameter::CLIP, self.clip)?;
        if self.new_rows_steps >= self.steps {
            let problem = format!("is {} of {} updates", self.new_rows_steps, self.steps);
            let remedy = "leave some updates for all weights";
            return Err(Error::parameter(parameter::NEW_ROWS_STEPS, problem, remedy));
        }
        if self.outline_steps >= self.steps {
            let problem = format!("is {} of {} updates", self.outline_steps, self.steps);
            let remedy = "leave some updates for whole documents";
            return Err(Error::parameter(parameter::OUTLINE_STEPS, problem, remedy));
        }
        if !(self.weight_decay.is_finite() && self.weight_decay >= 0.0) {
            let problem = format!("is {}", self.weight_decay);
            return Err(Error::parameter(parameter::WEIGHT_DECAY, problem, "give 0 or more"));
        }
        Ok(())
    }
}

/// The checkpoint from which training started.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InitRecipe {
    /// Its config and weights.
    pub files: Vec<InputHash>,
    /// The number of tokens whose rows it has not trained.
    pub new_tokens: u64,
    /// Whether drift trained it from random weights. Then it has not seen the molecules that are reserved for tests.
    pub by_drift: bool,
}

/// The complete recipe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recipe {
    /// The shape of the decoder.
    pub shape: Shape,
    /// The schedule of the updates.
    pub schedule: Schedule,
    /// The weights of tokens in the loss.
    pub loss: Loss,
    /// The random changes of conformers in each pass.
    pub augmentation: Augmentation,
    /// The encoding of coordinates.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// The seed of the initial weights and of the order of documents.
    pub seed: u64,
    /// The checkpoint from which training started, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<InitRecipe>,
    /// The tokenizer's name.
    pub tokenizer: String,
    /// The token that ends a text.
    pub end_of_text: String,
    /// The token that begins a text, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beginning_of_text: Option<String>,
    /// The files of tokenizer and corpus.
    pub inputs: Vec<InputHash>,
}
