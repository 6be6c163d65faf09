//! Generation under each logit processor, measured.
//!
//! - [`compare`] sets two records side by side.

mod advice;
pub mod compare;
pub mod environment;
pub mod molecules;
pub mod record;
