//! What an extension is to reach, and of which base.

use serde_json::Value;

use super::reuse::Reuse;
use super::texts::ALL_CONTEXTS;
use crate::design::scheme::cuts::SchemeKind;
use crate::design::scheme::slots::Range;
use drift_core::encoding::Encoding;
use drift_core::tokenizer::Tokenizer;

/// What to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Exactly this many tokens a block, with as few new ones as can be.
    TokensPerBlock(usize),
    /// At most this many new tokens, with as few tokens a block as can be.
    Budget(u64),
}

/// What to make.
pub struct ExtensionPlan {
    /// The tokenizer to extend.
    pub base: Tokenizer,
    /// Its JSON, [as it is read](super::extend::as_read).
    pub base_json: Value,
    /// Which tokens are allowed.
    pub kind: SchemeKind,
    /// The dialect whose blocks change.
    pub dialect: Encoding,
    /// The fewest decimals of a number of these blocks, in the stripped dialect; none: as few as the tokens allow.
    pub fewest_decimals: Option<usize>,
    /// Which blocks change.
    pub range: Range,
    /// How far to go.
    pub aim: Aim,
    /// Old tokens whose ids the new ones take, if any may go.
    pub reuse: Option<Reuse>,
    /// The seed of the search.
    pub seed: u64,
    /// In how many contexts every number is run; [`super::texts::ALL_CONTEXTS`] unless time is short. Of the 10 MB
    /// of mixed text the same share is run.
    pub contexts: usize,
}

impl ExtensionPlan {
    /// For numbers below 15 Å, as many of them as the tokens allow, checked in all contexts.
    pub fn new((base, base_json): (Tokenizer, Value), kind: SchemeKind, dialect: Encoding, aim: Aim) -> Self {
        ExtensionPlan {
            base,
            base_json,
            kind,
            dialect,
            fewest_decimals: None,
            range: Range::USUAL,
            aim,
            reuse: None,
            seed: 0,
            contexts: ALL_CONTEXTS,
        }
    }
}
