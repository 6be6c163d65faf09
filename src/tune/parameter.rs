//! What a user can set in the plans of this crate and of those below it, as their errors name it.

use drift_core::error::Parameter;
pub use drift_data::parameter::*;

/// The tokenizer to extend.
pub const BASE: Parameter = Parameter::new("base");
/// New tokens at most.
pub const BUDGET: Parameter = Parameter::new("budget");
/// A placeholder to judge.
pub const CANDIDATE: Parameter = Parameter::new("candidate");
/// Whether other ways are set beside.
pub const COMPARE: Parameter = Parameter::new("compare");
/// The fewest decimals of a number.
pub const FEWEST_DECIMALS: Parameter = Parameter::new("fewest decimals");
/// Merges to learn.
pub const MERGES: Parameter = Parameter::new("merges");
/// Which numbers are meant.
pub const RANGE: Parameter = Parameter::new("range");
/// Old tokens whose ids new ones take.
pub const REUSE: Parameter = Parameter::new("reuse");
/// The tokenizers.
pub const TOKENIZER: Parameter = Parameter::new("tokenizer");
/// Tokens of every block.
pub const TOKENS_PER_BLOCK: Parameter = Parameter::new("tokens per block");
/// What is no harm.
pub const TOLERANCE: Parameter = Parameter::new("tolerance");
/// Tokens in all.
pub const VOCAB_SIZE: Parameter = Parameter::new("vocab size");
/// How harms are summed.
pub const WEIGHTS: Parameter = Parameter::new("weights");
