//! Rows to begin with for new tokens: [`weights`] reads single rows of a model's tables, [`initial`] makes new ones.

pub mod initial;
pub mod weights;
