//! Tokenizer design: the smallest extension of a tokenizer under which every block takes exactly N tokens, proved.
//!
//! - [`grammar`] says which blocks a scheme is for, [`scheme`] how they are cut, [`mod@cut`] by which expression.
//! - [`space`] and [`stripped`] say what every scheme of a dialect costs and which costs least, [`designs`] chooses
//!   between them, [`search`] looks for the same by argmin; [`bound`] and [`kinds`] count what no tokenizer can do without;
//!   [`front`] sets the designs beside each other.
//! - [`layout`] says what kinds of bases there are. [`extend`] writes the scheme into a base's `tokenizer.json`, [`mod@undo`] takes it out again; [`check`] runs what it promises, and nothing is
//!   written unless all of it holds.
//! - [`rows`] makes rows to begin with for the new tokens from a model's [`weights`]; [`mixed`] makes text without blocks.
//! - [`train`](mod@train) is the way through, [`report`] what it says.
//!
//! # Why positions and contexts do not matter
//! 1. The first pre-tokenizer isolates every text that looks like a block in the range; its expression looks at nothing
//!    around the block, so the left and right contexts do not matter. No added token and no normalizer touches a block
//!    ([`extend`] and [`check`] refuse bases where one could).
//! 2. The base's own pre-tokenizers leave a text alone that is exactly one block, and do to all others what they did.
//! 3. The last expression cuts a block by its slots. Where it cuts depends on the spelling's shape alone: sign or not,
//!    one or two integer digits, and in the stripped dialect the count of decimals, three times; at most 8,000 shapes, all
//!    of which are run.
//! 4. Each piece is then looked up in the vocabulary by itself. So the pieces of one number do not depend on the other
//!    two, and it is enough to run every number in every position, not every block.

mod around;
mod blocks;
pub mod bound;
pub mod bpe;
pub mod check;
pub mod compare;
pub mod cut;
pub mod designs;
pub mod extend;
pub mod front;
pub mod grammar;
pub mod guard;
pub mod kinds;
pub mod layout;
pub mod learned;
pub mod measure;
pub mod merges;
pub mod mixed;
pub mod pieces;
pub mod plain;
pub mod report;
pub mod rows;
pub mod sample;
pub mod scheme;
pub mod scratch;
pub mod search;
pub mod space;
pub mod stripped;
pub mod texts;
pub mod train;
pub mod undo;
pub mod weights;

pub use grammar::Grammar;
pub use learned::LearnedReport;
pub use merges::{MergesPlan, train_merges};
pub use report::DesignReport;
pub use scheme::{Kind, Range, Scheme};
pub use scratch::{ScratchPlan, train_scratch};
pub use train::{Aim, Plan, Trained, train};
