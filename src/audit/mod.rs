//! Judging generated text.
//!
//! - [`geometry`] sets generated conformers against reference conformers.

pub mod geometry;
