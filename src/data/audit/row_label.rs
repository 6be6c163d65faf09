//! What tells the rows of a report apart: the model, the logit processor, and its placeholder.

use serde::{Deserialize, Serialize};

/// The name of the logit processor that leaves the model alone.
pub const NO_PROCESSOR: &str = "none";

/// The name of drift's own logit processor, which allows exactly the legal texts.
const AUTOMATON: &str = "automaton";

/// What is known of the origin of a row's texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct RowLabel {
    /// The model's name, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The logit processor, if it is known.
    pub lp: Option<String>,
    /// The placeholder of the logit processor, if it has one.
    pub placeholder: Option<String>,
}

impl RowLabel {
    /// The logit processor with its placeholder, or `-` if it is not known.
    pub fn processor(&self) -> String {
        let lp = self.lp.as_deref().unwrap_or("-");
        self.placeholder.as_ref().map_or_else(|| lp.to_owned(), |placeholder| format!("{lp} {placeholder}"))
    }

    /// Whether the texts were written by the model alone.
    pub fn is_without_processor(&self) -> bool {
        self.lp.as_deref() == Some(NO_PROCESSOR)
    }

    /// Whether the texts were written under drift's own logit processor.
    pub fn is_automaton(&self) -> bool {
        self.lp.as_deref() == Some(AUTOMATON)
    }
}
