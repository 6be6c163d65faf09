//! Tokenizer design: the smallest extension of a tokenizer under which every block takes exactly N tokens, proved.
//!
//! - [`scheme`] says how blocks are cut, what that costs, and what none can do without.
//! - [`extension`] writes a scheme into a base's `tokenizer.json`, takes it out again, and runs what it promises; nothing
//!   is written unless all of it holds.
//! - [`learned`] learns tokens from a corpus, in the pieces of a scheme; [`measured`] counts a corpus' tokens.
//! - [`rows`] makes rows to begin with for the new tokens from a model's; [`model`] writes a checkpoint that has them.
//! - [`train`](mod@train), [`train_merges`](mod@train_merges) and [`train_scratch`](mod@train_scratch) are the ways
//!   through, [`report`] what they say; [`front`] sets the designs beside each other, [`compare`] the ways; [`request`] is
//!   all of them behind one door, with what lies [`beside`] the base.
//! - [`advice`] says what works with a tokenizer where a template, or the automaton, does not.
//!
//! # Why positions and contexts do not matter
//! 1. The first pre-tokenizer isolates every text that looks like a block in the range; its expression looks at nothing
//!    around the block, so the left and right contexts do not matter. No added token and no normalizer touches a block
//!    ([`extension::extend`] and [`extension::check`] refuse bases where one could).
//! 2. The base's own pre-tokenizers leave a text alone that is exactly one block, and do to all others what they did.
//! 3. The last expression cuts a block by its slots. Where it cuts depends on the spelling's shape alone: sign or not,
//!    one or two integer digits, and in the stripped dialect the count of decimals, three times: with four decimals
//!    at most 8,000 shapes. All of them are run.
//! 4. Each piece is then looked up in the vocabulary by itself. So the pieces of one number do not depend on the other
//!    two, and it is enough to run every number in every position, not every block.

pub mod advice;
pub mod beside;
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
pub mod train;
pub mod train_merges;
pub mod train_scratch;

pub use beside::Beside;
pub use extension::plan::{Aim, ExtensionPlan};
pub use extension::reuse::Reuse;
pub use learned::merges::MergesPlan;
pub use learned::scratch::ScratchPlan;
pub use model::extend::{ExtendModelPlan, extend_model};
pub use model::report::ExtendModelReport;
pub use report::designed::DesignReport;
pub use report::learned::LearnedReport;
pub use report::trained::Trained;
pub use request::{Base, Goal, MadeTokenizer, TokenizerReport, TokenizerRequest};
pub use rows::recipe::RowInit;
pub use scheme::cuts::{Scheme, SchemeKind};
pub use scheme::grammar::Grammar;
pub use scheme::slots::Range;
pub use train::{possible, train};
pub use train_merges::train_merges;
pub use train_scratch::train_scratch;
