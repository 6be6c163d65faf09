//! How many events of a trace are used, and how many are not.

use std::collections::BTreeMap;

use serde::Serialize;

/// The numbers of used and unused events in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct TraceEvents {
    /// Events with a begin and an end, from which all figures are computed.
    pub timed: u64,
    /// Events without a duration: names of rows, flows, counters and marks.
    pub untimed: u64,
    /// Unusable events, by the reason.
    pub left_out: BTreeMap<&'static str, u64>,
}
