//! The goal of an extension, and its base.

use serde_json::Value;

use super::base::BaseTokenizer;
use super::reuse::Reuse;
use super::texts::ALL_CONTEXTS;
use crate::design::scheme::cuts::SchemeKind;
use crate::design::scheme::grammar::Grammar;
use crate::design::scheme::slots::Range;
use drift_core::{Encoding, Tokenizer};

/// The goal of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Exactly this many tokens per block, with as few new tokens as possible.
    TokensPerBlock(usize),
    /// At most this many new tokens, with as few tokens per block as possible.
    Budget(u64),
}

/// The plan of an extension.
pub struct ExtensionPlan {
    /// The tokenizer to extend.
    pub base: Tokenizer,
    /// The JSON of the base, [as `tokenizers` reads it](super::extend::as_read).
    pub base_json: Value,
    /// Which tokens are allowed.
    pub kind: SchemeKind,
    /// The encoding whose blocks get new tokens.
    pub encoding: Encoding,
    /// The smallest number of decimals of a number in these blocks, in the stripped encoding; `None` for as few as the tokens
    /// allow.
    pub fewest_decimals: Option<usize>,
    /// The range of coordinates whose blocks get new tokens.
    pub range: Range,
    /// The goal.
    pub aim: Aim,
    /// The old tokens whose ids the new tokens take, if any may be removed.
    pub reuse: Option<Reuse>,
    /// The seed of the search.
    pub seed: u64,
    /// The number of contexts in which every number is tried; [`super::texts::ALL_CONTEXTS`] unless time is short. The same share
    /// of the 10 MB of mixed text is tried.
    pub contexts: usize,
}

impl ExtensionPlan {
    /// Returns a plan for numbers below 15 Å, with as many of their decimals as the tokens allow, checked in all contexts.
    pub fn new(base: Tokenizer, base_json: Value, kind: SchemeKind, encoding: Encoding, aim: Aim) -> Self {
        ExtensionPlan {
            base,
            base_json,
            kind,
            encoding,
            fewest_decimals: None,
            range: Range::USUAL,
            aim,
            reuse: None,
            seed: 0,
            contexts: ALL_CONTEXTS,
        }
    }

    /// Returns the base.
    pub(in crate::design) fn base(&self) -> BaseTokenizer<'_> {
        BaseTokenizer { tokenizer: &self.base, json: &self.base_json }
    }

    /// Returns the blocks in the range whose numbers have all their decimals.
    pub(crate) fn fixed_grammar(&self) -> Grammar {
        Grammar::fixed(self.range, self.encoding.precision())
    }
}
