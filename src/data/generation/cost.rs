//! The cost of a run.

use serde::{Deserialize, Serialize};

/// The cost of a run. Rates are per second of the run, without the time to start the device.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// The number of tokens written after the prompts.
    pub generated_tokens: u64,
    /// The number of these tokens that were forced, because the logit processor allowed only one.
    pub forced_tokens: u64,
    /// The number of forward passes after prefill.
    pub decode_steps: u64,
    /// The number of these passes that a GPU computed with drift's own kernels.
    #[serde(default)]
    pub kernel_steps: u64,
    /// The number of wasted tokens: those of blocks that are not three numbers, and of digits beyond the format.
    pub wasted_tokens: u64,
    /// Tokens written per second.
    pub tokens_per_second: f64,
    /// Characters written per second.
    pub characters_per_second: f64,
    /// Texts written per second.
    pub conformers_per_second: f64,
    /// CPU seconds of generation, summed over all threads; `None` on a GPU, or if the system does not report them.
    pub cpu_seconds: Option<f64>,
    /// Where the time went, in seconds.
    pub seconds: Seconds,
    /// The peak memory of the process so far, in bytes; `None` if the system does not report it.
    pub peak_memory_bytes: Option<u64>,
    /// The minimum of data movement and computation; `None` in records from before it was counted.
    #[serde(default)]
    pub floor: Option<Roofline>,
}

/// The minimum amount of data that a run had to move between memory and processor, and how close the run came to the time that this
/// takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// The counted bytes and operations.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// The device's memory bandwidth in bytes per second, measured after the run. `None` if it was not measured, or if the run was
    /// faster.
    pub bytes_per_second: Option<f64>,
    /// The seconds needed to move these bytes at this bandwidth.
    pub floor_seconds: Option<f64>,
    /// The ratio of these seconds to the seconds of generation, without templates and start.
    pub floor_share: Option<f64>,
}

/// Seconds by phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// The total time.
    pub total: f64,
    /// The time before the first step, in which a device compiles kernels and allocates memory.
    #[serde(default)]
    pub start: f64,
    /// Forward passes over prompts.
    pub prefill: f64,
    /// Forward passes of decode steps.
    pub forward: f64,
    /// Computing masks and advancing the states of the logit processor.
    pub lp: f64,
    /// Sampling.
    pub sampling: f64,
    /// Building templates.
    pub templates: f64,
    /// Anything else.
    pub other: f64,
}

impl Seconds {
    /// Returns the total time without the start and the templates.
    pub fn writing(&self) -> f64 {
        self.total - self.start - self.templates
    }

    /// Returns the share of a part in the total time, 0 to 1.
    pub fn share(&self, part: f64) -> f64 {
        part / self.total.max(f64::MIN_POSITIVE)
    }
}

/// The least memory traffic and arithmetic of a generation. Every weight is read once per pass, and the keys and values of a row
/// once per pass. Activations between layers are not counted, nor are repeated reads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Bytes that are moved between memory and processor.
    pub bytes: f64,
    /// Multiplications and additions, each counted separately.
    pub operations: f64,
}

/// How seconds of a run are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpeedMeasure {
    /// CPU seconds of all threads, so that other load on the machine has little effect.
    Cpu,
    /// Wall-clock seconds: on a GPU, or if the system reports no CPU seconds.
    #[default]
    Wall,
}

impl SpeedMeasure {
    /// Returns the unit in words, as in "texts per …".
    pub fn unit(self) -> &'static str {
        match self {
            SpeedMeasure::Cpu => "CPU second",
            SpeedMeasure::Wall => "second",
        }
    }
}
