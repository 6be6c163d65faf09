//! Which events of a trace count.

use std::collections::BTreeMap;

use serde::Serialize;

/// How many events of a trace count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct TraceEvents {
    /// Events with a begin and an end, which all figures are made of.
    pub timed: u64,
    /// Names of rows, flows, counters and marks, which have no duration.
    pub untimed: u64,
    /// Events that say nothing that can be used, by what is wrong with them.
    pub left_out: BTreeMap<&'static str, u64>,
}
