//! What a user can set in the plans of this crate and of those below it, as their errors name it.

use drift_core::error::Parameter;
pub use drift_tune::parameter::*;

/// Rows of a batch.
pub const BATCH: Parameter = Parameter::new("batch");
/// Tokens of an update.
pub const BATCH_TOKENS: Parameter = Parameter::new("batch tokens");
/// The greatest norm of a gradient.
pub const CLIP: Parameter = Parameter::new("clip");
/// Conformers of a text.
pub const CONFORMERS: Parameter = Parameter::new("conformers");
/// The longest document.
pub const CONTEXT: Parameter = Parameter::new("context");
/// What computes.
pub const DEVICE: Parameter = Parameter::new("device");
/// The type of weights and cache.
pub const DTYPE: Parameter = Parameter::new("dtype");
/// Whose decoders compute.
pub const ENGINE: Parameter = Parameter::new("engine");
/// The token that ends a text.
pub const EOS: Parameter = Parameter::new("eos");
/// Worked examples of prompts.
pub const EXAMPLES: Parameter = Parameter::new("examples");
/// Texts for each molecule.
pub const GENERATIONS: Parameter = Parameter::new("generations");
/// Width of an attention head.
pub const HEAD_DIM: Parameter = Parameter::new("head dim");
/// Query heads.
pub const HEADS: Parameter = Parameter::new("heads");
/// Width of the residual stream.
pub const HIDDEN: Parameter = Parameter::new("hidden");
/// Key and value heads.
pub const KV_HEADS: Parameter = Parameter::new("kv heads");
/// Decoder layers.
pub const LAYERS: Parameter = Parameter::new("layers");
/// The highest learning rate.
pub const LEARNING_RATE: Parameter = Parameter::new("learning rate");
/// Whether reference conformers are scored.
pub const LIKELIHOOD: Parameter = Parameter::new("likelihood");
/// Updates of new tokens' rows alone.
pub const NEW_ROWS_STEPS: Parameter = Parameter::new("new rows warmup");
/// The tokenizer whose tokens are not new.
pub const NEW_TOKENS_OF: Parameter = Parameter::new("new tokens of");
/// Texts that are drawn together and weighted.
pub const RESAMPLE: Parameter = Parameter::new("resample");
/// Whether to go on from a saved state.
pub const RESUME: Parameter = Parameter::new("resume");
/// A file of SMILES.
pub const SMILES: Parameter = Parameter::new("smiles");
/// A file of SMILES by name.
pub const SMILES_OF: Parameter = Parameter::new("smiles of");
/// Which part of a corpus.
pub const SPLIT: Parameter = Parameter::new("split");
/// Updates of the weights.
pub const STEPS: Parameter = Parameter::new("steps");
/// The decay of matrices.
pub const WEIGHT_DECAY: Parameter = Parameter::new("weight decay");
