//! Chrome traces in the format of torch.profiler, summed while they are read, and compared in eight tables.
//!
//! `event` parses one event, `read` collects events, `names` sums them by category and name, and `rows` numbers threads and
//! devices. `category` classifies categories; `kernels` classifies kernels into `kinds`; `calls` classifies calls and operators.
//! `busy` joins intervals and finds the gaps between them; `nesting` computes nested spans. `summary` holds the sums of a trace,
//! `side` makes the table rows of one trace, and `tables` compares two traces.
//!
//! Times are whole nanoseconds. The memory does not grow with the length of a trace: names, intervals and spans have limits. If a
//! limit is reached, a note of the table says so.

mod busy;
mod calls;
mod category;
mod event;
mod kernels;
mod kinds;
mod names;
mod nesting;
mod read;
mod rows;
mod side;
mod summary;
mod tables;

pub use read::TraceEvents;
pub(super) use read::{Events, Trace};
pub(super) use summary::Summary;
pub(super) use tables::tables;
pub use tables::{TraceRow, TraceTable};
