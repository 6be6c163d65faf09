//! What a run took.

use serde::{Deserialize, Serialize};

use crate::generate::Traffic;

/// What a run took. Rates are by its seconds, those of the start of a device left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Tokens written after the prompts.
    pub generated_tokens: u64,
    /// Of them, tokens that the logit processor left no choice.
    pub forced_tokens: u64,
    /// Forward passes after prefill.
    pub decode_steps: u64,
    /// Those of them that a GPU did by drift's own kernels.
    #[serde(default)]
    pub kernel_steps: u64,
    /// Tokens of junk: generated tokens of blocks that are not three numbers, and of digits beyond the format.
    pub wasted_tokens: u64,
    /// Tokens written per second.
    pub tokens_per_second: f64,
    /// Characters written per second.
    pub characters_per_second: f64,
    /// Texts written per second.
    pub conformers_per_second: f64,
    /// CPU seconds of generating, all threads; none on a GPU, or where the system doesn't tell.
    pub cpu_seconds: Option<f64>,
    /// Where the time went, in seconds.
    pub seconds: Seconds,
    /// The most memory that the process held so far, in bytes; none where the system doesn't tell.
    pub peak_memory_bytes: Option<u64>,
    /// What had to be moved and computed at least; none in records of before this was counted.
    #[serde(default)]
    pub floor: Option<Roofline>,
}

/// What a run had to move between memory and processor at least, and how near it came to the time that this takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// By counting: bytes, and operations.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Bytes per second that the device reads, measured after the run; none where it was not, or where the run was faster.
    pub bytes_per_second: Option<f64>,
    /// Seconds of moving so many bytes at this rate.
    pub floor_seconds: Option<f64>,
    /// These by the seconds of generating, templates and the start left out.
    pub floor_share: Option<f64>,
}

/// Seconds by phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// All of it.
    pub total: f64,
    /// Before the first step: a device's kernels compiled, its memory taken.
    #[serde(default)]
    pub start: f64,
    /// Forward passes over prompts.
    pub prefill: f64,
    /// Forward passes of decode steps.
    pub forward: f64,
    /// Masks and states of the logit processor.
    pub lp: f64,
    /// Sampling.
    pub sampling: f64,
    /// Building templates.
    pub templates: f64,
    /// Anything else.
    pub other: f64,
}

impl Seconds {
    /// What is left of all without the start and the templates.
    pub fn writing(&self) -> f64 {
        self.total - self.start - self.templates
    }

    /// The share of all that a part of it is, 0 to 1.
    pub fn share(&self, part: f64) -> f64 {
        part / self.total.max(f64::MIN_POSITIVE)
    }
}
