//! Finds the placeholder with the least harm, measures the remaining harm, and proves that nothing better exists.
//!
//! A position template forces COPY tokens and leaves F FREE slots per block, while real blocks take T tokens. [`borders()`]
//! determines for which tokenizers this description is complete; others are refused. [`replay()`] computes the effect of F on each
//! real block, and [`ReplayCounts`] sums it over a corpus for every F. [`attainable`] constructs a placeholder for every F that is
//! possible. [`search()`] looks for the least [`Harm`] by annealing digit strings. [`Certificate`] compares the harm reached with
//! the least harm over all F. [`fit()`] is the complete procedure.

mod assignment;
mod attainable;
mod borders;
mod certificate;
mod classes;
mod comparison;
mod counts;
mod drawn;
mod first_pass;
mod fit;
mod fitted;
mod forcing;
mod front;
mod grammar;
mod intervals;
mod objective;
mod plan;
mod replay;
mod report;
mod sample;
mod search;
mod slot_tokens;
mod statement;
mod strings;
mod task;

pub use assignment::{ClassProblem, ClassifiedConformer};
pub use attainable::{AttainableTokens, free_tokens};
pub use borders::{Borders, CrossingTokens, EncodedBlocks, borders, inside, takes_templates};
pub use certificate::Certificate;
pub use classes::{ClassReport, HeldOutResult, PartitionReport, best_partition};
pub use comparison::ComparedHarm;
pub use counts::{Measures, ReplayCounts, ReplayTotals};
pub use fit::fit;
pub use fitted::{FittedClasses, FittedFile, FittedPlaceholder};
pub use front::front;
pub use grammar::{Number, Numbers, Space, text};
pub use intervals::Intervals;
pub use objective::{Harm, Objective};
pub use plan::{EncodingChoice, FitPlan};
pub use replay::{BlockReplay, replay};
pub use report::{
    Alternative, BlockDrift, CandidateReport, Conditions, CorpusReport, FitReport, FitResult,
    RefusedTokenizer, SCHEMA, SearchReport, TokenCount,
};
pub(crate) use sample::{Reservoir, key_of_place};
pub use search::{Assignment, SearchResult, SearchSettings, search};
