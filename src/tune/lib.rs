//! What is found for a tokenizer: the placeholder of least harm with its proof, extensions under which each block takes as many
//! tokens, and encodings side by side.

mod anneal;
pub mod design;
pub mod encodings;
pub mod parameter;
pub mod placeholder;
