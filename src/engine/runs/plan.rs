//! The plan of a generation.

use std::path::PathBuf;

use crate::generate::{Sampling, SelfChecking};
use crate::model::{Device, Room, Synthetic};
use drift_core::constraint::ProcessorKind;
use drift_core::constraint::automaton::AnswerForm;
use drift_core::encoding::EncodingRequest;
use drift_core::job::InputHash;
use drift_data::corpus::EmbeddedCorpus;
pub use drift_data::generation::{EngineChoice, EvalPart, GeometrySettings};
use drift_data::prompts::{Molecules, PromptMolecule};
use drift_tune::placeholder::FittedFile;

/// What is generated: the models, the logit processors, and how texts are drawn.
#[derive(Debug, Clone)]
pub struct GeneratePlan {
    /// The models, run one after the other.
    pub models: Vec<ModelChoice>,
    /// The tokenizer, if it is not the one next to the model.
    pub tokenizer: Option<PathBuf>,
    /// The logit processors.
    pub processors: Vec<ProcessorKind>,
    /// The placeholders of the processors that take one.
    pub placeholders: Vec<PlaceholderChoice>,
    /// How blocks are written. Where the user does not state it, it is taken from the model's recipe, or else from the given
    /// conformers and the model's own text.
    pub encoding: EncodingRequest,
    /// The number of texts for each molecule.
    pub generations: Generations,
    /// The number of rows of a batch.
    pub batch: usize,
    /// The sampling preset's name.
    pub preset: String,
    /// The sampling settings of the preset.
    pub sampling: Sampling,
    /// The seed of all draws.
    pub seed: u64,
    /// The device on which to compute.
    pub device: Device,
    /// The engine.
    pub engine: EngineChoice,
    /// How a GPU is checked before it writes texts.
    pub self_check: SelfChecking,
    /// The reason why candle's operations are used instead of a GPU's kernels, if an earlier process lost the GPU because of them.
    pub given_up: Option<String>,
    /// The form of answers: how many conformers each contains, and whether the prompt ends with the tag that opens the first.
    pub form: AnswerForm,
    /// The worked examples that precede the molecule in every prompt.
    pub examples: Vec<PromptMolecule>,
    /// The files of these examples.
    pub example_inputs: Vec<InputHash>,
    /// The token that ends a text, if it is not the one named by the model's files.
    pub eos: Option<String>,
    /// How the KV cache grows.
    pub room: Room,
    /// The largest number of tokens of a text. By default, 16 plus one and a half times the tokens of the longest way to write the
    /// molecule.
    pub max_new_tokens: Option<usize>,
    /// Whether to log the model's probability of each token. This needs the full LM head at every token.
    pub log_probabilities: bool,
    /// The number of texts of a molecule that are drawn together, weighted by the probability that the mask left, and resampled at
    /// the ends of blocks. Also logs probabilities. Only for drift's own engine.
    pub resample: Option<usize>,
    /// How the logit processor `geometry` masks.
    pub geometry: GeometrySettings,
    /// Whether to keep a span for each phase of each step.
    pub trace: bool,
}

impl GeneratePlan {
    /// Returns the files from which `molecules`, the worked examples and the placeholders were read.
    pub fn inputs(&self, molecules: &Molecules) -> Vec<InputHash> {
        let file = |choice: &PlaceholderChoice| match choice {
            PlaceholderChoice::File(file) => Some(file.source.clone()),
            _ => None,
        };
        let of_prompts = molecules.inputs.iter().chain(&self.example_inputs).cloned();
        of_prompts.chain(self.placeholders.iter().filter_map(file)).collect()
    }
}

/// The number of texts that are written for a molecule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generations {
    /// The same number for each molecule.
    Each(usize),
    /// This many times the number of the molecule's reference conformers; 2 is usual in the field.
    PerReference(usize),
}

impl Generations {
    /// Returns the number for a molecule with `references` references.
    pub fn of(self, references: usize) -> usize {
        match self {
            Generations::Each(texts) => texts,
            Generations::PerReference(times) => times.saturating_mul(references),
        }
    }

    /// At least `texts` for each molecule, unless the number follows its references.
    pub fn at_least(self, texts: usize) -> Self {
        match self {
            Generations::Each(own) => Generations::Each(own.max(texts)),
            Generations::PerReference(_) => self,
        }
    }
}

impl std::str::FromStr for Generations {
    type Err = &'static str;

    /// Parses `5`, or `2k`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, kind): (&str, fn(usize) -> Self) = match text.strip_suffix(['k', 'K']) {
            Some(number) => (number, Generations::PerReference),
            None => (text, Generations::Each),
        };
        let count = number.parse::<u32>().ok().filter(|count| *count > 0);
        count
            .map(|count| kind(count as usize))
            .ok_or("give a number such as 5, or one times the reference conformers of a molecule such as 2k")
    }
}

impl std::fmt::Display for Generations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Generations::Each(texts) => texts.fmt(f),
            Generations::PerReference(times) => write!(f, "{times}k"),
        }
    }
}

/// The source of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// The reference checkpoint embedded in drift.
    Embedded,
    /// A folder with config.json, safetensors and tokenizer.json.
    Folder(PathBuf),
    /// Random weights of a known shape, only for measuring throughput; needs a tokenizer.
    Synthetic(Synthetic),
}

impl ModelChoice {
    /// Returns the embedded corpus that suits the model: the small one for the embedded model, and the drug-like one for any other model
    /// and for shapes whose speed is measured.
    pub fn corpus(&self) -> EmbeddedCorpus {
        match self {
            ModelChoice::Embedded => EmbeddedCorpus::Small,
            ModelChoice::Folder(_) | ModelChoice::Synthetic(_) => EmbeddedCorpus::DrugLike,
        }
    }
}

/// The placeholder for the blocks of a position template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceholderChoice {
    /// This text, without brackets.
    Text(String),
    /// The placeholder with the least harm for the tokenizer, by `drift fit` on the embedded corpus.
    Fitted,
    /// The placeholder in a file that `drift fit -o` wrote for the tokenizer: one per class of blocks if that is an improvement.
    File(FittedFile),
    /// Both [`THEIR_PLACEHOLDER`](drift_core::constraint::THEIR_PLACEHOLDER) and the fitted one; none if the tokenizer supports no
    /// template.
    Usual,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_texts_are_read_as_they_are_written() {
        for (text, count) in [("5", Generations::Each(5)), ("2k", Generations::PerReference(2))] {
            assert_eq!(text.parse(), Ok(count));
            assert_eq!(count.to_string(), text);
        }
        assert_eq!((Generations::Each(5).of(3), Generations::PerReference(2).of(3)), (5, 6));
        for text in ["", "k", "0", "0k", "-1", "2kk", "1.5k", "99999999999"] {
            assert!(text.parse::<Generations>().is_err(), "{text}");
        }
    }
}
