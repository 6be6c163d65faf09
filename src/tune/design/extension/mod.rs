//! Writing a scheme into a `tokenizer.json`, taking it out again, and proving what it promises.
//!
//! - [`plan`] says what to reach, [`layout`] what kinds of bases there are, `base` what the search needs of one.
//! - [`extend`] writes the scheme, [`guard`] keeps new tokens out of other texts, [`strip`] makes requests repeatable;
//!   [`new_tokens`] and [`config`] are the files beside it.
//! - [`reuse`] takes old tokens out whose ids new ones get.
//! - [`check`] runs every promise: `numbers` every number in every position, `fallbacks` what is no block of the grammar,
//!   [`plain`] and [`mixed`] texts without blocks; [`texts`] are the others, `around` the reference.

mod around;
pub(super) mod base;
pub mod check;
pub(super) mod checker;
pub mod config;
pub mod extend;
mod fallbacks;
pub mod guard;
pub(super) mod json;
pub mod layout;
pub mod mixed;
pub mod new_tokens;
pub(super) mod numbers;
pub mod plain;
pub mod plan;
pub mod reuse;
pub mod strip;
pub mod texts;
