//! A finished tokenizer with its report.

use super::designed::DesignReport;
use crate::design::extension::new_tokens::NewTokens;

/// A finished tokenizer with its report.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedTokenizer<R = DesignReport> {
    /// The bytes of the new `tokenizer.json`.
    pub tokenizer_json: Vec<u8>,
    /// The new tokens.
    pub new_tokens: NewTokens,
    /// The report on what it is, and on what was proved.
    pub report: R,
    /// Whether the base already was the result of the same plan.
    pub unchanged: bool,
}

impl<R> TrainedTokenizer<R> {
    /// Applies `view` to the report, and keeps the rest.
    pub fn map<S>(self, view: impl FnOnce(R) -> S) -> TrainedTokenizer<S> {
        let TrainedTokenizer { tokenizer_json, new_tokens, report, unchanged } = self;
        TrainedTokenizer { tokenizer_json, new_tokens, report: view(report), unchanged }
    }
}
