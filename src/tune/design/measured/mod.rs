//! Measurements of a corpus: [`sample`] is the part to learn from, [`corpus`] counts its tokens, [`histogram`] counts blocks by
//! number of tokens, and [`block_coverage`] counts blocks by the grammars that include them.

pub(crate) mod block_coverage;
pub mod corpus;
pub mod histogram;
pub mod sample;
