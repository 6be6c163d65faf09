//! Work that is cut into shards, and work that goes on where it stopped.
//!
//! A [`Shard`] says which part of the work a shard has: every n-th item, or a run of [`files`]. A [`Manifest`]
//! says what the work is. Both stand at the head of a [`journal`], to which what is finished is added, a checksum a line: a
//! process that is killed loses what it was at, and the same command goes on. All shards of one work merge to what one
//! process would have written.

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
