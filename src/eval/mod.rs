//! Generation under each logit processor, measured.
//!
//! [`evaluate`] is the way through: `checkpoint` loads a model, [`molecules`] says for what to generate, `run` generates
//! under each logit processor, whose templates hold `fillings`, `likelihood` scores the reference conformers, `judged` judges
//! the texts, `tally` counts, `paired` sets each run against none, `advice`
//! puts it into words, and [`record`] is what comes out. [`mod@compare`] sets two records side by side.

mod advice;
mod checkpoint;
pub mod compare;
mod environment;
mod examples;
mod fillings;
mod judged;
mod likelihood;
pub mod molecules;
mod paired;
pub mod plan;
mod probabilities;
pub mod record;
mod run;
mod tally;

pub use checkpoint::recipe_dialect;
pub use environment::cpu_seconds;
pub use run::{Evaluation, TextRecord, evaluate};
