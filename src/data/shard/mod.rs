//! Work that is split into shards, and work that can be continued after it stopped.
//!
//! A [`Shard`] determines its part of the work: every n-th item, or a run of [`files`]. A [`Manifest`] describes the work,
//! including the shard, and is the first line of a [`journal`]. Finished pieces are appended to the journal with one checksum per
//! line. A process that is killed loses only its current piece, and running the same command again continues the work. Merging all
//! shards gives what a single process would have written.

pub mod files;
pub mod journal;
mod manifest;
mod number;
pub mod progress;
mod set;
pub mod slurm;

pub use manifest::{FILE, Manifest, SCHEMA, Work};
pub use number::Shard;
pub use set::ShardSet;
