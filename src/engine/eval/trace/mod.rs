//! Chrome traces, as torch.profiler writes them, summed while they are read, and set side by side in eight tables.
//!
//! `event` reads one event, `read` gathers them, `names` sums them by category and name, `rows` numbers threads and devices.
//! What a category is says `category`, what a kernel computes `kernels`, of which `kinds` there are, and what a call or an operator does `calls`. `busy` joins
//! intervals and finds the gaps between them, `nesting` finds what lies inside what. `summary` is what is left of a trace,
//! `side` makes the rows of one trace of it, and `tables` sets two of them side by side.
//!
//! Times are whole nanoseconds. No memory grows with the length of a trace: names, intervals and spans have limits, and what
//! happens at a limit is said in a note of the table.

mod busy;
mod calls;
mod category;
mod counted;
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

pub use counted::TraceEvents;
pub(super) use read::{Events, Trace};
pub(super) use summary::Summary;
pub(super) use tables::tables;
pub use tables::{TraceRow, TraceTable};
