//! How a token is drawn from logits: presets, and draws that are keyed by sample, position and token.
//!
//! A [`Sampling`] says what is done to the logits, [`draw()`] draws from [`Candidates`] with the [`Noise`] of a sample. Knows
//! no model: drift's engine and other engines that list what is legal draw the same tokens with the same seed.

mod draw;
mod presets;

pub use draw::{Candidates, Noise, draw, log_probability, most_likely};
pub use draw::{maximum, not_finite, nothing_allowed};
pub use presets::Sampling;
