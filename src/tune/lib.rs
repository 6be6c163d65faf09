//! Tools for a tokenizer: finding the placeholder with the least harm, with a proof; extending the tokenizer such that every block
//! takes the same number of tokens; and comparing encodings.

mod anneal;
pub mod design;
pub mod encodings;
pub mod parameter;
pub mod placeholder;
