//! The trainer: Qwen3 and Llama decoders in `f32`, from random weights or from a checkpoint.
//!
//! [`train()`] is the way through. `start` says where it begins, `documents` makes texts to tokens, `batches` says which of
//! them an update sees, `gradients` gives loss and gradient of a batch, `optimizer` makes the update, `new_rows` one of new
//! tokens alone, `state` keeps training that was stopped, `export` writes what transformers reads.
//!
//! On the CPU gradients are written out by hand instead of recorded (`network`, `backward`): nothing is kept that the way
//! back does not need, and attention runs document by document. On a GPU candle records them (`recorded`), which takes half
//! the lines and on the CPU several times as long. `tests/it/train.rs` compares the first with finite differences
//! and with candle's own, `tests/it/train_init.rs` both with each other and with transformers.

pub mod attention;
pub mod augment;
pub mod autograd;
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
pub mod report;
mod start;
pub mod state;
mod tensors;
mod trainer;

pub use augment::Augmentation;
pub use documents::prompt;
pub use gradients::Gradients;
pub use recipe::{InitRecipe, Optimizer, Recipe, Schedule, Shape};
pub use report::{TrainReport, Validation};
pub use start::{InitCheckpoint, Start};
pub use trainer::{TrainPlan, train};
