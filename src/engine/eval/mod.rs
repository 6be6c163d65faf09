//! Evaluation: generates texts with each logit processor, and measures them.
//!
//! [`generate_texts`] generates texts, and [`evaluate()`] also judges them. `generation` is what both share. `checkpoint` loads a model, and `encoding` determines how it writes numbers.
//! [`molecules`], `prompt_pools`, `reference_set` and `subject` select the molecules. `run` generates with one logit processor,
//! whose templates contain `placeholders`. `judged` judges the texts, `measured` measures their geometry, `chemistry` checks
//! their chemistry, `energies` requests their energies, and `by_text` writes a line for each text. `likelihood` scores the
//! reference conformers, `tally` counts, `paired` and `speed` compare each run with the run without a processor, and `advice` puts
//! the results into words. [`record`] is the result. [`mod@compare`] compares two records.

mod advice;
mod answers;
mod checkpoint;
pub mod compare;
pub mod device;
mod drift;
mod encoding;
mod energies;
mod environment;
mod evaluate;
mod figure;
mod figures;
mod finished;
mod generation;
mod kept;
mod kept_run;
mod likelihood;
mod placeholders;
pub mod plan;
mod probabilities;
mod protocol;
pub mod record;
mod run;
mod run_cost;
mod same;
mod self_check_note;
mod text_seconds;
mod texts;
mod texts_file;
mod trace;
mod written;

pub use answers::MOST_EXAMPLES;
pub use checkpoint::trained_on;
pub use environment::cpu_seconds;
pub use evaluate::{Evaluation, check, evaluate, evaluate_shard};
pub use finished::{Finished, KeptModel, KeptText, Spent};
pub use generation::{ShardDone, check_generation};
pub use kept::Kept;
pub use texts::{OtherTexts, SameTexts, TextDifference};
pub use texts_file::{GeneratedTexts, generate_shard, generate_texts};
