//! A judge in memory: references once, then texts in batches, with a verdict, figures and a reward for each.
//!
//! [`Judge`] holds the references; [`Judge::score`] gives [`BatchScores`]. Texts are judged by the functions that [`audit`](super::audit()) and
//! `drift eval` ask too: [`judge`](super::judge()) for the text, [`usable_points`] for its conformer,
//! [`Chemistry`](super::chemistry::Chemistry) for its rules, and [`Topology`](super::geometry::Topology) for its distances. So all of
//! them come to the same bits.

mod duplicates;
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

pub use duplicates::{DUPLICATE_ANGSTROM, duplicates};
pub use in_memory::Judge;
pub use lines::VerdictLine;
pub use matrix::{MoleculeDistances, PutBytes, RmsdMatrix};
pub use pieces::{conformers_in, without_examples};
pub use plan::JudgePlan;
pub use points::{reordered, usable_points};
pub use reward::{Reward, RewardPart};
pub use scores::{BatchScores, GroupScore, ScoredConformer};
pub use verdict::ConformerVerdict;

pub(super) use points::points_by_3dmolgen;
