//! Extends a model with rows for an extended tokenizer: makes a complete checkpoint from a checkpoint and a tokenizer.
//!
//! [`extend`] is the complete procedure. [`source`] reads the model and refuses inconsistent ones, [`added`] compares the
//! tokenizers, [`layers`] compares the decoder layers,
//! [`tables`] computes the new rows, [`pieces`] and [`copy`] write the weights with a bounded buffer, [`settings`]
//! adapts the configurations, [`companions`] selects the other files, and [`report`] is the report.
//!
//! # What stays the same
//! Every old token keeps its row in the embedding and in the LM head, bit for bit, and every other tensor keeps its bytes. So the
//! logits of old tokens on a text of old tokens are unchanged.
//!
//! # Rows without a token
//! A padded embedding has rows after the last token. In the LM head they compete with all others, so they are set to the mean of
//! the old tokens' rows. Their logit is then the mean of all logits. Since `exp` is convex, k such rows together get at most k / V
//! of the probability of the V old tokens.

mod added;
mod companions;
mod copy;
pub mod extend;
mod layers;
mod pieces;
pub mod report;
mod settings;
mod source;
mod tables;
