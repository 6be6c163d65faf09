//! Tokens learned from a corpus within the pieces of a scheme. [`bpe`] is the algorithm, [`merges`] extends a base, and [`scratch`]
//! trains a tokenizer from scratch.

pub mod bpe;
pub mod merges;
pub mod scratch;
