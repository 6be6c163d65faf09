//! The core of drift: how coordinates are written, what a molecule is, how a tokenizer encodes a text, and which tokens a model may
//! generate next. It knows no model, no file of conformers and no command line, and can be used alone with any inference engine.

pub mod checkpoint;
pub mod chem;
pub mod command;
pub mod constraint;
#[doc(hidden)]
pub mod counters;
pub mod encoding;
pub mod error;
pub mod geometry;
pub mod io;
pub mod job;
mod named;
pub mod parameter;
pub mod run_files;
pub mod sampling;
pub mod skeleton;
pub mod text;
pub mod tokenizer;
pub mod vector;

// What nearly every file of the crates above uses.
pub use encoding::Encoding;
pub use error::{Error, Result};
pub use job::Job;
pub use tokenizer::Tokenizer;
