//! drift finds, proves and ends *token drift* in language models that write 3D molecules as text.
//!
//! Data flows text → corpus → stats → checkpoint → tokenizer → placeholder → design → constraint → audit → model → train →
//! generate → eval → report → cli; a module imports only from those
//! before it (`tests/it/architecture.rs` holds that). See ARCHITECTURE.md for the map.

pub mod error;
pub mod io;
pub mod job;

pub mod text;

pub mod corpus;

pub mod stats;

pub mod checkpoint;

pub mod tokenizer;

pub mod placeholder;

pub mod design;

pub mod constraint;

pub mod audit;

pub mod model;

pub mod train;

pub mod generate;

pub mod eval;

pub mod report;

pub mod cli;

pub use error::{Error, Result};
