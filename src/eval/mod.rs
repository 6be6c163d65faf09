//! Generation under each logit processor, measured.
//!
//! - [`compare`] sets two records side by side.

pub mod compare;
