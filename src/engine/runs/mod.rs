//! Generation of the texts of prompts with models under logit processors.
//!
//! [`generate_texts`] generates a file of texts. `loaded` loads a model and generates what is not stored yet: `checkpoint` reads its
//! files, `encoding` determines how it writes numbers, `placeholders` finds the placeholders of templates, and `run` generates with one
//! logit processor. `kept` stores finished texts, so that the same command goes on. `written` is a text as files hold it, `run_cost`
//! what a run cost, and `probabilities` what the model and the mask gave to its tokens.

pub(crate) mod answers;
pub(crate) mod checkpoint;
mod encoding;
pub(crate) mod environment;
mod finished;
mod kept;
mod kept_run;
pub(crate) mod loaded;
mod placeholders;
pub mod plan;
mod probabilities;
pub(crate) mod protocol;
pub(crate) mod run;
pub(crate) mod run_cost;
pub(crate) mod self_check_note;
mod text_seconds;
pub(crate) mod texts_file;
pub(crate) mod written;

pub use answers::MOST_EXAMPLES;
pub use checkpoint::trained_on;
pub use environment::cpu_seconds;
pub use finished::{JournalEntry, KeptModel, KeptText, PartCost};
pub use kept::TextStore;
pub use loaded::{ShardDone, with_geometry};
pub use texts_file::{GeneratedTexts, generate_shard, generate_texts};
