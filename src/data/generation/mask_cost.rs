//! The effect of a mask, as in records: the probability that it left, and the results of resampling by it.

use serde::{Deserialize, Serialize};

use crate::stats::histogram::Quantiles;
use drift_core::constraint::TextClass;

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
    /// Returns the spread of these values; `None` without values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        // Without values the mean is NaN, but then there are no quantiles either, and `None` is returned.
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Spread { mean, quantiles: Quantiles::from_values(values)? })
    }
}

/// The probability Z that the mask left at each token, from the softmax of the logits divided by the temperature (1 if greedy),
/// before top-k, top-p and min-p. Z is 1 if nothing was forbidden. A text is drawn 1/∏ Z times as often as from the model itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaskCost {
    /// The number of texts.
    pub texts: u64,
    /// Σ ln Z of a text, in nats; never above 0.
    pub log_z: Spread,
    /// The contribution of each class of tokens; classes without tokens are omitted.
    pub classes: Vec<ClassMaskCost>,
}

/// The contribution of the tokens of a class to Σ ln Z.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassMaskCost {
    /// The class of text; the end of text counts as a tag.
    pub class: TextClass,
    /// The number of tokens of the class.
    pub tokens: u64,
    /// Σ ln Z of the class's tokens in a text, in nats.
    pub log_z: Spread,
}

/// The results of resampling by ∏ Z, over groups of texts that were drawn together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResamplingReport {
    /// The largest number of texts in a group.
    pub draws: usize,
    /// The number of groups; one or more for each molecule.
    pub groups: u64,
    /// The effective sample size at the end, (Σw)² / Σw² of the weights since the last resampling.
    pub effective: Spread,
    /// The smallest effective sample size at the end of any block.
    pub least_effective: Spread,
    /// The number of intermediate resamplings in all groups. The last resampling, which makes all weights equal, is not counted.
    pub resamplings: u64,
    /// The number of initial texts from which the final texts descend.
    pub ancestors: Spread,
    /// The natural logarithm of the estimated probability that no token falls outside the mask.
    pub log_legal: Spread,
}
