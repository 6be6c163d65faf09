//! A corpus as a tokenizer sees it: its [`sample`] to learn from, and [`corpus`], its tokens; [`histogram`] and [`reach`]
//! are its blocks by their tokens and by the grammars that have them.

pub mod corpus;
pub mod histogram;
pub mod reach;
pub mod sample;
