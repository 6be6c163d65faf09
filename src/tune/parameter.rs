//! The parameters that a user can set in the plans of this crate and of the crates below it, with the names that errors use.

use drift_core::error::Parameter;
pub use drift_data::parameter::*;

/// The tokenizer to extend.
pub const BASE: Parameter = Parameter::new("base");
/// The largest number of new tokens.
pub(crate) const BUDGET: Parameter = Parameter::new("budget");
/// A placeholder to judge.
pub(crate) const CANDIDATE: Parameter = Parameter::new("candidate");
/// Whether other methods are compared.
pub(crate) const COMPARE: Parameter = Parameter::new("compare");
/// The smallest number of decimals of a number.
pub(crate) const FEWEST_DECIMALS: Parameter = Parameter::new("fewest decimals");
/// The number of tokens to learn by merges.
pub(crate) const MERGES: Parameter = Parameter::new("merges");
/// The range of numbers whose blocks get new tokens.
pub(crate) const RANGE: Parameter = Parameter::new("range");
/// The old tokens whose ids new tokens take.
pub(crate) const REUSE: Parameter = Parameter::new("reuse");
/// The number of tokens of every block.
pub const TOKENS_PER_BLOCK: Parameter = Parameter::new("tokens per block");
/// The RMSD up to which there is no harm.
pub const TOLERANCE: Parameter = Parameter::new("tolerance");
/// The size of the whole vocabulary.
pub const VOCAB_SIZE: Parameter = Parameter::new("vocab size");
/// The weights with which harms are summed.
pub const WEIGHTS: Parameter = Parameter::new("weights");
