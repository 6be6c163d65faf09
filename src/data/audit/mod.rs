//! Judges generated text: junk, lost digits, validity, geometry. These are pure functions of strings and coordinates; only [`read`]
//! opens files.
//!
//! - [`judge_block`] judges the text between `<` and `>`, [`judge`] a whole answer against its prompt, and [`judge_as_3dmolgen`]
//!   does so by 3DMolGen's own rules. [`SampleCounts`] sums results over samples, [`DriftHistogram`] sums drift.
//! - [`EncodingCounts`] distinguishes fixed from stripped texts.
//! - [`marks`] locates the flaws of an answer, [`readable`] reads its blocks without them.
//! - [`geometry`] compares conformers of one molecule: bond lengths, RMSD after alignment, coverage. [`References`] does so over
//!   molecules.
//! - [`ensemble`] measures all texts of a molecule together: Hit@K, clusters, torsions.
//! - [`chemistry`] checks stereo, clashes, bonds, angles and planes of a conformer.
//! - [`Judge`] does all of this in memory, text by text.
//! - [`TextLine`] is a generated text as a line of a file.
//! - [`skeletons`] judges texts of any skeleton by the data of their prompts.
//! - [`read`] reads files of generated text, [`audit`](run::audit) runs a whole audit.

pub mod align;
mod block;
mod block_faults;
mod by_text;
pub mod chemistry;
mod compared_rows;
mod counts;
pub mod coverage;
mod document;
mod encoding;
mod energies;
pub mod ensemble;
mod example;
mod examples;
pub mod geometry;
mod group;
mod judged;
mod judged_rows;
mod judging;
mod marks;
mod molecule_records;
mod molecules;
mod other_molecules;
mod outcome;
pub mod pairs;
mod pictured;
mod prompt_matcher;
mod quaternion;
mod ranked;
pub mod read;
mod records;
mod references;
mod report;
mod request;
mod row_ensembles;
mod row_label;
mod rows;
mod run;
mod runs;
mod sample;
mod shape;
mod shard;
pub mod skeletons;
mod smoke;
pub mod spread;
mod superposition;
mod text_encoding;
mod text_line;
mod threedmolgen;
mod worst;

pub use block::{BlockVerdict, goes_on, judge_block};
pub use block_faults::{BlockFault, FaultyBlock};
pub use by_text::{AuditResult, AuditedTexts};
pub use counts::{DriftHistogram, SampleCounts};
pub use coverage::MissingPolicy;
pub use encoding::EncodingCounts;
pub use energies::{
    AnsweredText, EnergyFigures, EnergyReport, EnergyText, StrainFigures, TextEnergy, energy_report,
};
pub use example::{Example, ExampleProblem};
pub use group::FileReport;
pub use judged_rows::{JudgedRows, RowText, RowTexts, judge_rows};
pub use judging::{
    BatchScores, ConformerVerdict, EnsembleScore, GroupScore, Judge, JudgePlan, MatrixFormat,
    MoleculeDistances, MoleculeEnsemble, PutBytes, Reward, RewardPart, RmsdMatrix, ScoredConformer,
    VerdictLine, duplicates,
};
pub use marks::{Mark, MarkKind, marks, readable};
pub use molecule_records::{MoleculeRecord, PromptNats, molecules_csv};
pub use outcome::Outcome;
pub use pictured::PicturedText;
pub use prompt_matcher::{FoundPrompt, FoundPrompts, PromptMatcher};
pub use ranked::{RankedText, TextRank};
pub use records::RowField;
pub use references::{
    GeometryReport, MoleculeGeometry, PromptReferences, Reference, References, reference_reading,
};
pub use report::{AuditReport, SCHEMA};
pub use request::{AuditPlan, AuditRequest};
pub use row_label::RowLabel;
pub use run::{audit, audit_texts};
pub use runs::AuditRun;
pub use sample::{Split, TextSample, TextVerdict, coordinates, in_angstrom, judge, split};
pub use shard::{audit_shard, merge_audited};
pub use smoke::{ForeignPrompt, SmokeCounts, TheirReport};
pub use superposition::LeastRmsd;
pub use text_encoding::EncodingFrom;
pub use text_line::{DeadEnds, End, TextCost, TextLine};
pub use threedmolgen::judge_as_3dmolgen;
