//! The parameters of this crate's plans that users can set, by the names used in errors.
//!
//! Each crate defines its own parameters and re-exports those of the crates below it. The program finds the flag of a parameter by
//! its name.

use crate::error::Parameter;

/// The beginning of a skeleton's texts that stands in prompts.
pub const BEGUN: Parameter = Parameter::new("begun");
/// By how much distances may exceed their bounds.
pub(crate) const BOUNDS: Parameter = Parameter::new("bounds");
/// The logit processor.
pub const LP: Parameter = Parameter::new("logit processor");
/// The text in the blocks of templates.
pub const PLACEHOLDER: Parameter = Parameter::new("placeholder");
/// How tokens are sampled.
pub const PRESET: Parameter = Parameter::new("preset");
/// The tokenizers.
pub const TOKENIZER: Parameter = Parameter::new("tokenizer");
