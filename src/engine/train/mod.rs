//! The trainer: Qwen3 and Llama decoders in `f32`, from random weights or from a checkpoint.
//!
//! [`train()`] runs the whole training. `start` provides the first weights, `documents` turns texts into tokens, `batches` selects
//! the documents of each update, `gradients` computes loss and gradient of a batch, `optimizer` makes the update, `new_rows` makes
//! updates of new tokens only, `state` saves an interrupted training, and `export` writes the files for transformers.
//!
//! On the CPU the gradients are written by hand and not recorded (`network`, `backward`): only what the backward pass needs is
//! kept, and attention runs document by document. On a GPU candle records them (`autograd`), which takes half the lines of code,
//! but several times as long on the CPU. `tests/it/train.rs` compares the hand-written gradients with finite differences and with
//! candle's own; `tests/it/train_init.rs` compares both implementations with each other and with transformers.

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
pub use gradients::Gradients;
pub use recipe::{InitRecipe, Optimizer, Recipe, Schedule, Shape};
pub use report::{TrainReport, Validation};
pub use start::{InitCheckpoint, Start};
pub use trainer::{TrainPlan, train};
