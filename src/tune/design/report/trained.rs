//! A tokenizer that was made, with its report.

use super::designed::DesignReport;
use crate::design::extension::new_tokens::NewTokens;

/// What was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained<R = DesignReport> {
    /// The bytes of the new `tokenizer.json`.
    pub tokenizer_json: Vec<u8>,
    /// The new tokens.
    pub new_tokens: NewTokens,
    /// What it is, and what was proved.
    pub report: R,
    /// Whether the base was the result of the same plan already.
    pub unchanged: bool,
}

impl<R> Trained<R> {
    /// The tokenizer and its tokens as they are, with what `view` makes of the report.
    pub fn map<S>(self, view: impl FnOnce(R) -> S) -> Trained<S> {
        let Trained { tokenizer_json, new_tokens, report, unchanged } = self;
        Trained { tokenizer_json, new_tokens, report: view(report), unchanged }
    }
}
