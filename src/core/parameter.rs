//! What a user can set in the plans of this crate, as its errors name it.
//!
//! Each crate names its own, and hands on those of the crates below it. The program finds the flag of a parameter by its name.

use crate::error::Parameter;

/// The logit processor.
pub const LP: Parameter = Parameter::new("logit processor");
/// What templates hold in their blocks.
pub const PLACEHOLDER: Parameter = Parameter::new("placeholder");
/// How tokens are drawn.
pub const PRESET: Parameter = Parameter::new("preset");
