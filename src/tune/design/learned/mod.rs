//! Tokens learned from a corpus within the pieces of a scheme. [`bpe`] is the algorithm, [`merges`] extends a base, and [`scratch`]
//! trains a tokenizer from scratch. [`tokenizer`] is the result of both.

pub mod bpe;
pub mod merges;
pub mod scratch;
pub mod tokenizer;
