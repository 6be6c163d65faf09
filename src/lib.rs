//! drift finds, proves and ends *token drift* in language models that write 3D molecules as text.
//!
//! Data flows text → corpus → stats → tokenizer → placeholder → design → constraint → audit → model → train →
//! generate → eval → report → cli; a module imports only from those
//! before it (`tests/it/architecture.rs` holds that). See ARCHITECTURE.md for the map.

pub mod error;
pub mod io;
pub mod job;

pub mod text;

pub mod corpus;

pub mod stats;

pub mod mine;

pub mod tokenizer;

pub mod placeholder;

pub mod design;

pub mod constraint;

pub mod audit;

#[cfg(feature = "generate")]
pub mod model;

#[cfg(feature = "generate")]
pub mod train;

#[cfg(feature = "generate")]
pub mod generate;

#[cfg(feature = "generate")]
pub mod eval;

#[cfg(feature = "report")]
pub mod report;

#[cfg(feature = "cli")]
#[allow(clippy::disallowed_methods, reason = "the only place that prints")]
pub mod cli;

pub use error::{Error, Result};
