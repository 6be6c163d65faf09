//! The result of the self-check of a device, as records contain it.

use serde::{Deserialize, Serialize};

/// The combination for which a verdict on kernels is valid. They may behave differently on another GPU, with another driver, or if
/// compiled again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GpuIdentity {
    /// The GPU's name and compute capability: `NVIDIA H100 80GB HBM3, 9.0`.
    pub gpu: String,
    /// The newest CUDA version that the driver supports, and the driver's own version if the system reports it.
    pub driver: String,
    /// The kernels: the first characters of the SHA-256 of the machine code.
    pub kernels: String,
}

/// A place at which the kernels and candle's operations preferred different tokens, although candle's logits for the two are nearly
/// equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NearTie {
    /// The row of the check.
    pub row: usize,
    /// The index of the token in its text.
    pub position: usize,
    /// The token that the kernels chose.
    pub by_kernels: u32,
    /// The token that candle's operations would have chosen.
    pub by_candle: u32,
    /// By how much candle's logit of the first is lower.
    pub gap: f32,
}

/// A choice in bf16 whose logits differ by more than the bound, so that it was computed again in f32.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecomputedChoice {
    /// The row of the check.
    pub row: usize,
    /// The index of the token in its text.
    pub position: usize,
    /// The id of the token whose logits differ most.
    pub id: u32,
    /// The largest difference between a logit of the kernels and the same logit in f32, as a fraction of the row's largest logit in
    /// f32.
    pub kernels_off: f64,
    /// The same fraction for candle's operations in bf16.
    pub candle_off: f64,
}

/// The outcome of a self-check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything agreed.
    #[default]
    Passed,
    /// Something differed.
    Differs,
    /// The check did not finish, because kernels could not be compiled or launched, or there was no room.
    Failed,
}

/// The result of a self-check; by default of one that has compared nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// The outcome.
    pub verdict: Verdict,
    /// The first difference or failure; `None` if there was none.
    pub problem: Option<String>,
    /// Whether drift's kernels wrote the texts nevertheless, because the run insists on them.
    pub insisted: bool,
    /// Whether the verdict comes from an earlier run with this GPU, driver and model shape and these kernels.
    pub kept: bool,
    /// The duration of the check in this run, in seconds.
    pub seconds: f64,
    /// The GPU, driver and kernels; `None` if the device does not report them.
    pub device: Option<GpuIdentity>,
    /// The number of rows that were written.
    pub rows: usize,
    /// The number of token choices that were compared, each with all logits from which the token was chosen.
    pub choices: usize,
    /// How many of these were draws with the run's own preset; the others were greedy.
    pub drawn: usize,
    /// The bound of a logit's difference, as a fraction of the largest absolute logit of its row. A difference up to it counts as
    /// rounding without a comparison with f32.
    pub bound: f64,
    /// The largest difference found, as such a fraction.
    pub largest_difference: f64,
    /// The root mean square of all differences, as a fraction of the root mean square of the logits.
    pub mean_difference: f64,
    /// The choices that differ by more than the bound. Compared with f32, the kernels were not too far off, except in the last
    /// choice if the check found a difference.
    pub in_doubt: Vec<RecomputedChoice>,
    /// The tokens that differ where two logits are nearly equal.
    pub near_ties: Vec<NearTie>,
    /// The folder with the inputs and both outputs, if they are kept.
    pub evidence: Option<String>,
}

impl SelfCheck {
    /// Returns a check that could not finish.
    pub fn failed(problem: impl ToString) -> Self {
        let problem = Some(problem.to_string());
        SelfCheck { verdict: Verdict::Failed, problem, ..SelfCheck::default() }
    }
}
