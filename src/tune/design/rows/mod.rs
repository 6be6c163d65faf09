//! Rows to begin with for new tokens: [`weights`] reads single rows of a model's tables, [`recipe`] says what new ones are
//! made of, [`initial`] puts them into a file.

pub mod initial;
pub mod recipe;
pub mod weights;
