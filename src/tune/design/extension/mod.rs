//! Writes a scheme into a `tokenizer.json`, removes it again, and proves what it guarantees.
//!
//! - [`plan`] defines the goal, [`layout`] the supported kinds of bases, `base` what the search needs to know about a base.
//! - [`extend`] writes the scheme, [`guard`] keeps new tokens out of other texts, and [`strip`] makes requests repeatable.
//!   [`new_tokens`] and [`config`] are the files next to the tokenizer.
//! - [`reuse`] removes old tokens whose ids are given to new tokens.
//! - [`check`] checks every guarantee: `numbers` checks every number in every position, `fallbacks` checks texts that are not
//!   blocks of the grammar, [`plain`] and [`mixed`] check texts without blocks. [`texts`] contains the other texts, `block_context` the
//!   reference encoding.

pub(crate) mod base;
pub(super) mod block_context;
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
