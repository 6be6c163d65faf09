//! The settings of the self-check of a device.

use std::path::PathBuf;

/// The settings of the self-check before a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfChecking {
    /// Whether the device is checked.
    pub is_wanted: bool,
    /// Whether drift's kernels write the texts whatever the check finds; then any other failure is an error. If not, candle's
    /// operations write the texts after a failure.
    pub insists: bool,
    /// The folder in which verdicts are kept; without it each run repeats the check.
    pub verdicts: Option<PathBuf>,
    /// The folder for the inputs and both outputs of a failed check; without it they are lost.
    pub evidence: Option<PathBuf>,
}

impl SelfChecking {
    /// No self-check: for callers that compare the texts themselves.
    pub const OFF: SelfChecking =
        SelfChecking { is_wanted: false, insists: false, verdicts: None, evidence: None };
}

impl Default for SelfChecking {
    fn default() -> Self {
        SelfChecking { is_wanted: true, ..SelfChecking::OFF }
    }
}
