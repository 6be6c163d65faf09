//! A run of a generation: one model with one logit processor and placeholder.

use serde::{Deserialize, Serialize};

use super::cost::{Cost, SpeedMeasure};
use super::mask_cost::{MaskCost, ResamplingReport};
use super::self_check::SelfCheck;
use drift_core::Encoding;
use drift_core::constraint::{ProcessorKind, TextClass};

/// What is known about the texts of a run beside the texts themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerationRun {
    /// The model's name.
    pub model: String,
    /// The logit processor.
    pub lp: ProcessorKind,
    /// The placeholder, without brackets. If each class of blocks has its own, how blocks are classified and in which file. Null if
    /// the processor needs none.
    pub placeholder: Option<String>,
    /// The placeholder of each class of blocks, if blocks are classified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placeholder_classes: Vec<ClassPlaceholder>,
    /// The tokenizer's name.
    pub tokenizer: String,
    /// How coordinates are written.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// How the encoding was determined.
    #[serde(rename = "dialect_from")]
    pub encoding_from: Option<EncodingEvidence>,
    /// `cpu` or `cuda:0`.
    pub device: String,
    /// The number type of the weights and the cache.
    pub dtype: String,
    /// The number of rows of a batch.
    pub batch: usize,
    /// Whether the molecules are known to be new to the model.
    pub unseen: Unseen,
    /// The number of texts.
    pub texts: u64,
    /// The cost of the run.
    #[serde(flatten)]
    pub cost: Cost,
    /// The result of a GPU's self-check before it wrote texts; null on the CPU.
    #[serde(default)]
    pub self_check: Option<SelfCheck>,
    /// How the seconds of `batch_seconds` are measured.
    pub speed_measure: SpeedMeasure,
    /// The seconds of generation for each consecutive group of as many finished texts as a batch has rows. The last entry is for
    /// the remaining texts.
    pub batch_seconds: Vec<f64>,
    /// The model's probability of the tokens that were written; empty if probabilities were not logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probabilities: Vec<ClassProbability>,
    /// The effect of the mask on the model's distribution, if all logits were computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask_cost: Option<MaskCost>,
    /// The results of resampling by it, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resampling: Option<ResamplingReport>,
}

/// Whether a model is known not to have been trained on the molecules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unseen {
    /// It was not: drift trained it on this same input, and these molecules are the part that no training uses; or drift trained it
    /// on the corpus that excludes the molecules of the small one; or its weights are random.
    Yes,
    /// It may have been: drift trained it on this same input, and some of these molecules are from other parts.
    No,
    /// It is not known.
    #[default]
    Unknown,
}

drift_core::named!(Unseen { Yes: "yes", No: "no", Unknown: "unknown" });

/// The evidence for the way in which a model writes its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncodingEvidence {
    /// The user stated it.
    Given,
    /// The model's recipe states it.
    Recipe,
    /// The corpus or the references show it, and the model's own text does not contradict them.
    Conformers,
    /// The model's own text shows it, and the conformers leave it open.
    OwnText,
    /// The conformers and the model's own text both show it.
    Both,
    /// It is the default: random weights are run in the fixed encoding.
    Default,
}

/// The placeholder for the blocks of one class in a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassPlaceholder {
    /// The class.
    pub class: String,
    /// Its placeholder, without brackets.
    pub placeholder: String,
}

/// The probability that the model gave the tokens of a class, before any mask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassProbability {
    /// The class of text.
    pub class: TextClass,
    /// The number of tokens of the class.
    pub tokens: u64,
    /// The number of these tokens that the logit processor forced.
    pub forced: u64,
    /// Their mean probability.
    pub mean_probability: f64,
    /// Their mean negative log likelihood, in nats.
    pub mean_nats: f64,
    /// The share of these tokens to which the model gave less than one percent.
    pub unlikely: f64,
}
