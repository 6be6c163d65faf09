//! What to fit.

use std::collections::BTreeSet;

use super::grammar::{Space, USERS_PLACEHOLDERS};
use super::objective::Objective;
use crate::parameter;
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result};
use drift_core::tokenizer::Tokenizer;

/// Which dialects to fit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialectChoice {
    /// The corpus's own; both where it agrees with both or with neither.
    Auto,
    /// This one.
    Only(Encoding),
}

/// What to fit.
pub struct FitPlan {
    /// For each of these.
    pub tokenizers: Vec<Tokenizer>,
    /// In these dialects.
    pub dialects: DialectChoice,
    /// Judged beside the users' own, and chosen from like them; three numbers each.
    pub candidates: Vec<String>,
    /// What harm means.
    pub objective: Objective,
    /// The seed of the search and of the samples.
    pub seed: u64,
    /// Whether to try placeholders per class of block.
    pub classes: bool,
}

impl FitPlan {
    /// Refuses tokenizers that results could not be told apart by, and an objective that is none.
    ///
    /// # Errors
    /// If two have the same name, the tolerance is no length, or a weight is not 0 or more.
    pub fn check(&self) -> Result<()> {
        // Results are written to a file for each name, so a second one would overwrite the first.
        let mut names = BTreeSet::new();
        if let Some(twice) = self.tokenizers.iter().find(|tokenizer| !names.insert(tokenizer.name.as_str())) {
            let problem = format!("two tokenizers are named {}", twice.name);
            return Err(Error::parameter(parameter::TOKENIZER, problem, "rename a file or folder"));
        }
        self.objective.check()
    }

    /// The users' placeholders, with the separator of the dialect, then the plan's own, once each; with where they stand.
    pub(super) fn candidates_of(&self, dialect: Encoding) -> Vec<(String, &'static str)> {
        let in_dialect = |text: &str| text.replace(',', dialect.separator());
        let mut list: Vec<(String, &'static str)> = if dialect.is_decimal() {
            // The users' own are decimals, which are no slots of this encoding; its zeros stand in for them.
            USERS_PLACEHOLDERS.iter().map(|(text, source)| (in_dialect(text), *source)).collect()
        } else {
            vec![(Space(dialect).text(&Space(dialect).start()), "zeros")]
        };
        for candidate in &self.candidates {
            if !list.iter().any(|(text, _)| text == candidate) {
                list.push((candidate.clone(), "asked for"));
            }
        }
        list
    }
}
