//! Generation under each logit processor, measured.
//!
//! [`evaluate()`] is the way through: `checkpoint` loads a model, [`molecules`] and `subject` say for what to generate, `run`
//! generates under one logit processor, whose templates hold `placeholders`, `judged` judges the texts, `likelihood` scores the
//! reference conformers, `tally` counts, `paired` sets each run against none, `advice` puts it into words, and [`record`] is what
//! comes out. [`mod@compare`] sets two records side by side.

mod advice;
mod checkpoint;
pub mod compare;
mod environment;
mod evaluate;
mod events;
mod examples;
mod figures;
mod judged;
mod likelihood;
pub mod molecules;
mod paired;
mod placeholders;
pub mod plan;
mod probabilities;
pub mod record;
mod run;
mod subject;
mod tally;

pub use environment::cpu_seconds;
pub use evaluate::{Evaluation, TextRecord, evaluate};
