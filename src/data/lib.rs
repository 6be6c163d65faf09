//! Conformers and generated texts: readers for every format, the store, statistics, training text, and the audit of texts.

pub mod against;
pub mod audit;
pub mod compare;
pub mod corpus;
pub mod encode;
pub mod energy;
pub mod export;
pub mod flaws;
pub mod generation;
pub mod mine;
pub mod parameter;
pub mod prompts;
pub mod shard;
pub mod skeleton_tokens;
pub mod stats;
