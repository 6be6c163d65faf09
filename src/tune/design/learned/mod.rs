//! Tokens learned from a corpus, in the pieces of a scheme: [`bpe`] is how, [`merges`] goes on from a base, [`scratch`]
//! begins with nothing.

pub mod bpe;
pub mod merges;
pub mod scratch;
