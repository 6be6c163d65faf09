//! The date and machine of a generation.

use serde::{Deserialize, Serialize};

/// The date and machine of a generation or an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The day on which it began, in UTC: `2026-11-20`.
    pub date: String,
    /// The operating system and processor family.
    pub system: String,
    /// The processor's name, if the system reports it.
    pub processor: Option<String>,
    /// The number of threads that computed.
    pub threads: usize,
    /// The number of merged shards. Seconds, CPU seconds, steps and batches are summed; everything else is from the first shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<u32>,
}
