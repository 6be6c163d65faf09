//! Tokenizer design: finds the smallest extension of a tokenizer under which every block takes exactly N tokens, with a proof.
//!
//! - [`scheme`] defines how blocks are cut, how many tokens that needs, and a lower bound.
//! - [`extension`] writes a scheme into a base's `tokenizer.json`, removes it again, and checks what it guarantees. Nothing is
//!   written unless all checks pass.
//! - [`learned`] learns tokens from a corpus within the pieces of a scheme; [`measured`] counts the tokens of a corpus.
//! - [`rows`] computes initial embedding rows for the new tokens from a model's rows; [`model`] writes a checkpoint with them.
//! - [`train`](mod@train), [`train_merges`](mod@train_merges) and [`train_scratch`](mod@train_scratch) are the complete procedures,
//!   and [`report`] contains their reports. [`front`] compares the designs, [`compare`] the methods. [`request`] is the common
//!   entry point for all of them, with the files [`base_files`] the base.
//! - [`slots`] extends for the numbers of a skeleton instead, with the checks of [`extension`].
//! - [`advice`] names what works with a tokenizer for which a template, or the automaton, does not.
//!
//! # Why positions and contexts do not matter
//! 1. The first pre-tokenizer isolates every text that looks like a block in the range. Its expression does not look at the text
//!    around the block, so the left and right contexts do not matter. No added token and no normalizer affects a block
//!    ([`extension::extend`] and [`extension::check`] refuse bases where one could).
//! 2. The base's own pre-tokenizers leave a text that is exactly one block unchanged, and treat all other texts as before.
//! 3. The last expression cuts a block by its slots. The positions of the cuts depend only on the shape of the spelling: for each
//!    of the three numbers the sign, one or two integer digits and, in the stripped encoding, the number of decimals. With four
//!    decimals there are at most 8,000 shapes. All of them are tried.
//! 4. Each piece is then looked up in the vocabulary on its own. So the pieces of one number do not depend on the other two
//!    numbers, and it is enough to try every number in every position, instead of every block.

pub mod advice;
pub(crate) mod base_files;
mod commands;
pub mod compare;
pub mod extension;
pub mod front;
pub mod learned;
pub mod measured;
pub mod model;
pub mod report;
pub mod request;
pub mod rows;
pub mod scheme;
pub mod slots;
pub mod train;
pub mod train_merges;
pub mod train_scratch;

pub use base_files::BaseFiles;
pub use extension::plan::{Aim, ExtensionPlan};
pub use extension::reuse::Reuse;
pub use learned::scratch::ScratchPlan;
pub use model::extend::{ExtendModelPlan, extend_model};
pub use model::report::ExtendModelReport;
pub use report::designed::DesignReport;
pub use report::learned::LearnedReport;
pub use report::trained::TrainedTokenizer;
pub use request::{Base, Goal, MadeTokenizer, TokenizerReport, TokenizerRequest};
pub use rows::recipe::RowInit;
pub use scheme::cuts::{Scheme, SchemeKind};
pub use scheme::grammar::Grammar;
pub use scheme::slots::Range;
pub use slots::extend::SlotRequest;
pub use slots::report::SlotReport;
pub use train::{possible, train};
pub use train_merges::train_merges;
pub use train_scratch::train_scratch;
