//! A judge in memory: references are given once, then texts in batches. Each text gets a verdict, figures and a reward.
//!
//! [`Judge`] holds the references; [`Judge::score`] returns [`BatchScores`]. Texts are judged by the same functions as in
//! [`audit`](super::audit()) and `drift eval`: [`judge`](super::judge()) for the text, [`usable_points`] for its conformer,
//! [`Chemistry`](super::chemistry::Chemistry) for the rules, and [`Topology`](super::geometry::Topology) for the RMSDs. So all
//! three give the same bits.

mod duplicates;
mod ensemble_reports;
mod ensembles;
mod in_memory;
mod lines;
mod matrix;
mod molecule;
mod pieces;
mod plan;
mod points;
mod reward;
mod scores;
mod verdict;
mod why;

pub(crate) use duplicates::DUPLICATE_ANGSTROM;
pub use duplicates::duplicates;
pub use ensemble_reports::MoleculeEnsemble;
pub use ensembles::EnsembleScore;
pub use in_memory::Judge;
pub use lines::VerdictLine;
pub use matrix::{MatrixFormat, MoleculeDistances, PutBytes, RmsdMatrix};
pub(crate) use pieces::{conformers_in, without_examples};
pub use plan::JudgePlan;
pub(crate) use points::{reordered, usable_points};
pub use reward::{Reward, RewardPart};
pub use scores::{BatchScores, GroupScore, ScoredConformer};
pub use verdict::ConformerVerdict;

pub(super) use points::points_by_3dmolgen;
