//! A model with the rows of an extended tokenizer: a complete checkpoint, made from one and a tokenizer.
//!
//! [`extend`] is the way through. [`source`] reads what there is and refuses what does not hold together, [`added`] compares
//! the tokenizers, [`tables`] makes the new rows, [`pieces`] and [`copy`] write the weights in a bounded buffer, [`settings`]
//! says what becomes of the configurations, [`companions`] which other files come along; [`report`] is what was done.
//!
//! # What stays
//! Every old token keeps its row, bit for bit, in the embedding and in the LM head, and every other tensor its bytes. So
//! the logits of old tokens on a text of old tokens are what they were.
//!
//! # Rows of no token
//! An embedding that is padded has rows behind the last token. In the LM head they compete with all others, so they are the
//! mean of the old tokens' rows: their logit is then the mean of all logits, and since `exp` is convex, k of them together take
//! at most the share k / V of what the V old tokens have.

mod added;
mod companions;
mod copy;
pub mod extend;
mod pieces;
pub mod report;
mod settings;
mod source;
mod tables;
