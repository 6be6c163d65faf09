//! Evaluation: generates texts with each logit processor ([`crate::runs`]), and has them judged as an audit judges texts of
//! anyone ([`drift_data::audit`]).
//!
//! [`evaluate()`] does both. `drift` measures how many tokens a template leaves to blocks, `energies` requests the energies of texts,
//! `likelihood` scores the reference conformers, `same` compares the texts with those of another run, and `advice` puts the results
//! into words. [`record`] is the result.

mod advice;
mod drift;
mod energies;
mod evaluate;
mod likelihood;
pub mod plan;
mod protocol;
pub mod record;
mod same;
mod texts;

pub use evaluate::{Evaluation, evaluate, evaluate_shard};
pub use texts::{OtherTexts, SameTexts, TextDifference};
