//! Initial embedding rows for new tokens: [`weights`] reads single rows of a model's tables, [`recipe`] defines how new rows are
//! computed from them, and [`initial`] writes them to a file.

pub mod initial;
pub mod recipe;
pub mod weights;
