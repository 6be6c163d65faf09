//! Sampling a token from logits: presets, and draws that are keyed by sample, position and token.
//!
//! A [`Sampling`] defines the transformations of the logits. [`draw()`] samples from [`Candidates`] with the [`Noise`] of a sample.
//! This module knows no model: drift's engine and other engines that list the legal tokens sample the same tokens with the same
//! seed.

mod draw;
mod presets;

pub use draw::{Candidates, Noise, draw, log_probability, maximum, most_likely, not_finite, nothing_allowed};
pub use presets::Sampling;
