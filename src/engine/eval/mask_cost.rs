//! What a mask cost, as records have it: the probability that it left, and what resampling by it came to.

use serde::{Deserialize, Serialize};

use drift_core::constraint::TextClass;
use drift_data::stats::histogram::Quantiles;

/// A mean with quantiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The quantiles.
    #[serde(flatten)]
    pub quantiles: Quantiles,
}

impl Spread {
    /// Of these values; none without any.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        // Of no values it is no number, but then there are no quantiles either, and nothing is given.
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Spread { mean, quantiles: Quantiles::from_values(values)? })
    }
}

/// The probability Z that the mask left at each token, of the softmax of the logits divided by the temperature (1 if greedy),
/// before top-k, top-p and min-p. Where nothing was forbidden it is 1; a text is drawn 1/∏ Z times as often as the model would
/// have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaskCost {
    /// Texts.
    pub texts: u64,
    /// Σ ln Z of a text, in nats; never above 0.
    pub log_z: Spread,
    /// What each class of tokens adds to it; classes without tokens are left out.
    pub classes: Vec<ClassMaskCost>,
}

/// What the tokens of a class add to Σ ln Z.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassMaskCost {
    /// What they say; the end of text is a tag.
    pub class: TextClass,
    /// Tokens of the class.
    pub tokens: u64,
    /// Σ ln Z of those of a text, in nats.
    pub log_z: Spread,
}

/// What resampling by ∏ Z came to, over groups of texts that were drawn together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResamplingReport {
    /// Texts of a group at most.
    pub draws: usize,
    /// Groups; one or more for each molecule.
    pub groups: u64,
    /// Effective sample size at the end, (Σw)² / Σw² of the weights since the last resampling.
    pub effective: Spread,
    /// The least effective sample size at the end of any block.
    pub least_effective: Spread,
    /// Resamplings on the way, in all groups; the last one, which makes all weights the same, is not counted.
    pub resamplings: u64,
    /// Texts of the start that those of the end go back to.
    pub ancestors: Spread,
    /// Natural logarithm of the estimated probability that no token falls outside the mask.
    pub log_legal: Spread,
}
