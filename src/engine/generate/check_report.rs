//! Self-checks of devices as they are asked for, and as records tell of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::cuda::GpuIdentity;

/// Whether and how a device is checked before a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfChecking {
    /// Whether it is.
    pub is_wanted: bool,
    /// Drift's kernels write the texts whatever the check finds, and what fails is an error; else candle's operations do.
    pub insists: bool,
    /// The folder that verdicts are kept in; without it each run checks anew.
    pub verdicts: Option<PathBuf>,
    /// The folder for inputs and both outputs, where they differ; without it those of a failed check are lost.
    pub evidence: Option<PathBuf>,
}

impl SelfChecking {
    /// No check: for who compares the texts himself.
    pub const OFF: SelfChecking =
        SelfChecking { is_wanted: false, insists: false, verdicts: None, evidence: None };
}

impl Default for SelfChecking {
    fn default() -> Self {
        SelfChecking { is_wanted: true, ..SelfChecking::OFF }
    }
}

/// A place where kernels and candle's operations preferred different tokens, whose logits by candle are as good as equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NearTie {
    /// Row of the check.
    pub row: usize,
    /// Token of its text.
    pub position: usize,
    /// What the kernels took.
    pub by_kernels: u32,
    /// What candle's operations would have taken.
    pub by_candle: u32,
    /// How much worse the first is by candle's logits.
    pub gap: f32,
}

/// A choice in bf16 whose logits differ by more than the bound, and that was computed once more in f32.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// Row of the check.
    pub row: usize,
    /// Token of its text.
    pub position: usize,
    /// Whose logits differ most.
    pub id: u32,
    /// The largest difference between a logit by the kernels and in f32, as a part of the row's largest in f32.
    pub kernels_off: f64,
    /// The same by candle's operations in bf16.
    pub candle_off: f64,
}

/// How a self-check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything was as it should be.
    Passed,
    /// Something was not.
    Differs,
    /// It did not come to its end: kernels that cannot be compiled or launched, or no room.
    Failed,
}

/// What a self-check came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// How it ended.
    pub verdict: Verdict,
    /// What differs or failed first; none if nothing does.
    pub problem: Option<String>,
    /// Whether drift's kernels wrote the texts nonetheless, since the run insists on them.
    pub insisted: bool,
    /// Whether it is the verdict of an earlier run with this GPU, driver, shape and these kernels.
    pub kept: bool,
    /// Seconds that it took in this run.
    pub seconds: f64,
    /// Which GPU, driver and kernels; none where the device does not tell.
    pub device: Option<GpuIdentity>,
    /// Rows that were written.
    pub rows: usize,
    /// Choices of a token that were compared, with all logits that they were made from.
    pub choices: usize,
    /// Of these, draws by the run's own preset; the others are greedy.
    pub drawn: usize,
    /// The largest difference of a logit, as a part of the largest logit of its row by size, that is taken for rounding without
    /// f32 being asked.
    pub bound: f64,
    /// The largest one that was found.
    pub largest_difference: f64,
    /// The root mean square of all differences, as a part of that of the logits.
    pub mean_difference: f64,
    /// Choices that differ by more than the bound; in f32 the kernels turned out to be no further off than candle's operations,
    /// except at the last one if the check found a difference.
    pub in_doubt: Vec<Doubt>,
    /// Tokens that differ where two logits are as good as equal.
    pub near_ties: Vec<NearTie>,
    /// The folder of inputs and both outputs, if they are kept.
    pub evidence: Option<String>,
}

impl SelfCheck {
    /// One that did not come to its end.
    pub fn failed(problem: impl ToString) -> Self {
        let problem = Some(problem.to_string());
        SelfCheck { verdict: Verdict::Failed, problem, ..SelfCheck::begun(None) }
    }

    /// One that has compared nothing yet.
    pub(super) fn begun(device: Option<GpuIdentity>) -> Self {
        SelfCheck {
            verdict: Verdict::Passed,
            problem: None,
            insisted: false,
            kept: false,
            seconds: 0.0,
            device,
            rows: 0,
            choices: 0,
            drawn: 0,
            bound: 0.0,
            largest_difference: 0.0,
            mean_difference: 0.0,
            in_doubt: Vec::new(),
            near_ties: Vec::new(),
            evidence: None,
        }
    }
}
