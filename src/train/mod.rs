//! The small trainer for reference checkpoints: Qwen3 and Llama decoders on the CPU, in `f32`.
//!
//! [`train()`] is the way through. `documents` makes texts to tokens, `batches` says which of them an update sees,
//! `network` and `backward` give loss and gradient of a pack of documents, `optimizer` makes the update, `state` keeps
//! training that was stopped, `export` writes what transformers reads.
//!
//! Gradients are written out by hand instead of recorded: nothing is kept that the way back does not need, and
//! attention runs document by document. `tests/it/train.rs` compares them with finite differences and with candle's own.

pub mod attention;
pub mod augment;
mod backward;
pub mod batches;
pub mod documents;
pub mod export;
mod gradients;
pub mod kernels;
mod memory;
pub mod network;
mod new_rows;
pub mod optimizer;
pub mod parameters;
pub mod recipe;
pub mod recorded;
pub mod report;
mod start;
pub mod state;
mod tensors;
mod trainer;

pub use augment::Augmentation;
pub use documents::prompt;
pub use export::Numbers;
pub use gradients::Gradients;
pub use recipe::{InitRecipe, Optimizer, Recipe, Schedule, Shape};
pub use report::{TrainReport, Validation};
pub use start::{InitCheckpoint, Start};
pub use trainer::{TrainPlan, train};
