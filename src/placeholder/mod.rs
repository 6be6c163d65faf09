//! Which placeholder harms least, how much harm is left, and the proof that nothing better exists.
//!
//! A position template forces COPY tokens and leaves F FREE slots per block; real blocks take T tokens. For every
//! placeholder, [`replay()`] says what the difference does to each real block; [`Evidence`] sums that over a corpus;
//! [`search()`] finds the placeholder of least [`Harm`] by annealing; [`Certificate`] compares it with the least harm
//! over all integers F. [`fit()`] is the way through.

mod certificate;
mod classes;
mod evidence;
mod fit;
mod fitted;
mod grammar;
mod objective;
mod options;
mod partition;
mod replay;
mod report;
mod search;
mod survey;

pub use certificate::{Certificate, ClassProblem, ClassifiedConformer};
pub use classes::{ClassReport, PartitionReport};
pub use evidence::{Evidence, Measures};
pub use fit::{DialectChoice, FitPlan, fit};
pub use fitted::{Fitted, FittedClasses, FittedFile};
pub use grammar::{NumberShape, Shape, Space, USERS_PLACEHOLDERS, tie_key};
pub use objective::{Harm, Objective};
pub use options::Options;
pub use partition::Partition;
pub use replay::{BlockReplay, replay};
pub use report::{CandidateReport, CorpusReport, FitReport, FitResult, SCHEMA, SearchReport, TokenCount};
pub use search::{Assignment, Found, SearchSettings, search};
