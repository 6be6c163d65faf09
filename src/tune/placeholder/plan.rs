//! The plan of a fit.

use super::grammar::{Space, USERS_PLACEHOLDERS};
use super::objective::Objective;
use drift_core::{Encoding, Result, Tokenizer};

/// The encodings to fit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodingChoice {
    /// The decimals of the corpus, fixed or stripped; both if the corpus agrees with both or with neither.
    Auto,
    /// Only this encoding.
    Only(Encoding),
}

/// The plan of a fit.
pub struct FitPlan {
    /// The tokenizers to fit for.
    pub tokenizers: Vec<Tokenizer>,
    /// The encodings to fit for.
    pub encodings: EncodingChoice,
    /// Further candidates, three numbers each. They are judged and may be chosen like 3DMolGen's own placeholders.
    pub candidates: Vec<String>,
    /// The definition of harm.
    pub objective: Objective,
    /// The seed of the search and of the samples.
    pub seed: u64,
    /// Whether to fit placeholders per class of block too.
    pub classes: bool,
}

impl FitPlan {
    /// Refuses tokenizers whose results could not be distinguished, and an invalid objective.
    ///
    /// # Errors
    /// If two tokenizers have the same name, or the tolerance or a weight is negative or not finite.
    pub fn check(&self) -> Result<()> {
        Tokenizer::refuse_same_names(&self.tokenizers)?;
        self.objective.check()
    }

    /// 3DMolGen's placeholders with the separator of the encoding, then the plan's own candidates, without repetitions, each with
    /// its source.
    pub(super) fn candidates_of(&self, encoding: Encoding) -> Vec<(String, &'static str)> {
        let in_encoding = |text: &str| text.replace(',', encoding.separator());
        let mut list: Vec<(String, &'static str)> = if encoding.is_decimal() {
            // 3DMolGen's placeholders are decimals, which are not slots of this encoding. The encoding's zeros are used instead.
            USERS_PLACEHOLDERS.iter().map(|(text, source)| (in_encoding(text), *source)).collect()
        } else {
            vec![(Space(encoding).text(&Space(encoding).start()), "zeros")]
        };
        for candidate in &self.candidates {
            if !list.iter().any(|(text, _)| text == candidate) {
                list.push((candidate.clone(), "asked for"));
            }
        }
        list
    }
}
