//! The names of the parameters that users can set in the plans of this crate and of the crates below it. Errors name parameters by
//! them.

use drift_core::error::Parameter;
pub use drift_tune::parameter::*;

/// The number of rows in a batch.
pub const BATCH: Parameter = Parameter::new("batch");
/// The number of tokens in one optimizer update.
pub(crate) const BATCH_TOKENS: Parameter = Parameter::new("batch tokens");
/// The largest norm of a gradient.
pub(crate) const CLIP: Parameter = Parameter::new("clip");
/// The number of conformers in a text.
pub const CONFORMERS: Parameter = Parameter::new("conformers");
/// The length of the longest document, in tokens.
pub const CONTEXT: Parameter = Parameter::new("context");
/// The device that computes.
pub(crate) const DEVICE: Parameter = Parameter::new("device");
/// The number type of weights and KV cache.
pub(crate) const DTYPE: Parameter = Parameter::new("dtype");
/// The implementation that computes the decode steps.
pub const ENGINE: Parameter = Parameter::new("engine");
/// The token that ends a text.
pub const EOS: Parameter = Parameter::new("eos");
/// The number of worked examples in a prompt.
pub const EXAMPLES: Parameter = Parameter::new("examples");
/// The number of texts per molecule.
pub(crate) const GENERATIONS: Parameter = Parameter::new("generations");
/// The size of an attention head.
pub const HEAD_DIM: Parameter = Parameter::new("head dim");
/// The number of query heads.
pub const HEADS: Parameter = Parameter::new("heads");
/// The width of the residual stream.
pub const HIDDEN: Parameter = Parameter::new("hidden");
/// The number of key and value heads.
pub(crate) const KV_HEADS: Parameter = Parameter::new("kv heads");
/// The number of decoder layers.
pub(crate) const LAYERS: Parameter = Parameter::new("layers");
/// The highest learning rate.
pub(crate) const LEARNING_RATE: Parameter = Parameter::new("learning rate");
/// Whether reference conformers are scored.
pub(crate) const LIKELIHOOD: Parameter = Parameter::new("likelihood");
/// The number of first updates that train only the rows of new tokens.
pub(crate) const NEW_ROWS_STEPS: Parameter = Parameter::new("new rows warmup");
/// The base tokenizer; tokens that it lacks are new.
pub(crate) const NEW_TOKENS_OF: Parameter = Parameter::new("new tokens of");
/// The number of first updates with a part of each document's coordinates.
pub(crate) const OUTLINE_STEPS: Parameter = Parameter::new("outline steps");
/// The number of texts that are drawn together and weighted.
pub(crate) const RESAMPLE: Parameter = Parameter::new("resample");
/// Whether to continue from a saved state.
pub(crate) const RESUME: Parameter = Parameter::new("resume");
/// The number of updates of the weights.
pub const STEPS: Parameter = Parameter::new("steps");
/// The weight decay of the matrices.
pub(crate) const WEIGHT_DECAY: Parameter = Parameter::new("weight decay");
